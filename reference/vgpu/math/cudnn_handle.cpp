// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "reference/vgpu/math/cudnn_types.h"

using namespace rankscope::vgpu::math;

namespace {

// The release whose functions symbols/cudnn.txt lists. PyTorch refuses a cuDNN older than it was built with.
constexpr int kMajor = 9, kMinor = 26, kPatch = 0;

}  // namespace

extern "C" {

size_t cudnnGetVersion() {
    return kMajor * 10000 + kMinor * 100 + kPatch;
}
size_t cudnnGetCudartVersion() {
    return CUDART_VERSION;
}
int cudnnGetProperty(int which, int* value) {
    constexpr int kProperties[] = {kMajor, kMinor, kPatch};
    if (!value || which < 0 || which > 2) return kCudnnBadParameter;
    *value = kProperties[which];
    return kCudnnSuccess;
}

int cudnnCreate(CudnnHandle** handle) {
    if (!handle) return kCudnnBadParameter;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return kCudnnNotInitialized;
    *handle = new CudnnHandle;
    return kCudnnSuccess;
}
int cudnnDestroy(CudnnHandle* handle) {
    delete handle;
    return kCudnnSuccess;
}
int cudnnSetStream(CudnnHandle* handle, cudaStream_t stream) {
    if (!handle) return kCudnnBadParameter;
    handle->stream = stream;
    return kCudnnSuccess;
}
int cudnnGetStream(CudnnHandle* handle, cudaStream_t* stream) {
    if (!handle || !stream) return kCudnnBadParameter;
    *stream = handle->stream;
    return kCudnnSuccess;
}

const char* cudnnGetErrorString(int status) {
    switch (status) {
        case kCudnnSuccess:
            return "CUDNN_STATUS_SUCCESS";
        case kCudnnNotInitialized:
            return "CUDNN_STATUS_NOT_INITIALIZED";
        case kCudnnBadParameter:
            return "CUDNN_STATUS_BAD_PARAM";
        case kCudnnNotSupported:
            return "CUDNN_STATUS_NOT_SUPPORTED";
        case kCudnnExecutionFailed:
            return "CUDNN_STATUS_EXECUTION_FAILED";
        default:
            return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}
/// No more is known of an error than its status.
void cudnnGetLastErrorString(char* text, size_t length) {
    if (text && length > 0) std::snprintf(text, length, "%s", "");
}

}  // extern "C"
