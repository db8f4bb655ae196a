// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/math/cublas_handle.h"

#include "reference/vgpu/math/cublas_types.h"

using namespace rankscope::vgpu::math;

namespace {

constexpr int kMajor = 13, kMinor = 0, kPatch = 0;

}  // namespace

extern "C" {

int cublasCreate_v2(CublasHandle** handle) {
    if (!handle) return kInvalidValue;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return kNotInitialized;
    *handle = new CublasHandle;
    return kSuccess;
}
int cublasDestroy_v2(CublasHandle* handle) {
    if (!handle) return kNotInitialized;
    delete handle;
    return kSuccess;
}
int cublasGetVersion_v2(CublasHandle*, int* version) {
    if (!version) return kInvalidValue;
    *version = kMajor * 10000 + kMinor * 100 + kPatch;
    return kSuccess;
}
int cublasGetProperty(int which, int* value) {
    constexpr int kProperties[] = {kMajor, kMinor, kPatch};
    if (!value || which < 0 || which > 2) return kInvalidValue;
    *value = kProperties[which];
    return kSuccess;
}

int cublasSetStream_v2(CublasHandle* handle, cudaStream_t stream) {
    if (!handle) return kNotInitialized;
    handle->stream = stream;
    handle->workspace = nullptr;  // as documented: back to the library's own
    handle->workspaceBytes = 0;
    return kSuccess;
}
int cublasGetStream_v2(CublasHandle* handle, cudaStream_t* stream) {
    if (!handle || !stream) return kNotInitialized;
    *stream = handle->stream;
    return kSuccess;
}
int cublasSetWorkspace_v2(CublasHandle* handle, void* workspace, size_t bytes) {
    if (!handle) return kNotInitialized;
    handle->workspace = workspace;
    handle->workspaceBytes = bytes;
    return kSuccess;
}
int cublasSetMathMode(CublasHandle* handle, int mode) {
    if (!handle) return kNotInitialized;
    handle->math = mode;
    return kSuccess;
}
int cublasGetMathMode(CublasHandle* handle, int* mode) {
    if (!handle || !mode) return kNotInitialized;
    *mode = handle->math;
    return kSuccess;
}
int cublasSetPointerMode_v2(CublasHandle* handle, int mode) {
    if (!handle) return kNotInitialized;
    handle->pointerMode = mode;
    return kSuccess;
}
int cublasGetPointerMode_v2(CublasHandle* handle, int* mode) {
    if (!handle || !mode) return kNotInitialized;
    *mode = handle->pointerMode;
    return kSuccess;
}
int cublasSetAtomicsMode(CublasHandle* handle, int mode) {
    if (!handle) return kNotInitialized;
    handle->atomics = mode;
    return kSuccess;
}
int cublasGetAtomicsMode(CublasHandle* handle, int* mode) {
    if (!handle || !mode) return kNotInitialized;
    *mode = handle->atomics;
    return kSuccess;
}
/// Kept, and told; products are priced for the whole device all the same.
int cublasSetSmCountTarget(CublasHandle* handle, int count) {
    if (!handle) return kNotInitialized;
    handle->multiprocessors = count;
    return kSuccess;
}
int cublasGetSmCountTarget(CublasHandle* handle, int* count) {
    if (!handle || !count) return kNotInitialized;
    *count = handle->multiprocessors;
    return kSuccess;
}

const char* cublasGetStatusName(int status) {
    switch (status) {
        case kSuccess:
            return "CUBLAS_STATUS_SUCCESS";
        case kNotInitialized:
            return "CUBLAS_STATUS_NOT_INITIALIZED";
        case kAllocFailed:
            return "CUBLAS_STATUS_ALLOC_FAILED";
        case kInvalidValue:
            return "CUBLAS_STATUS_INVALID_VALUE";
        case kExecutionFailed:
            return "CUBLAS_STATUS_EXECUTION_FAILED";
        case kNotSupported:
            return "CUBLAS_STATUS_NOT_SUPPORTED";
        default:
            return "CUBLAS_STATUS_UNKNOWN";
    }
}
const char* cublasGetStatusString(int status) {
    return cublasGetStatusName(status);
}

}  // extern "C"
