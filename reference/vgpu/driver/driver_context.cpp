// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/context.h"
#include "reference/vgpu/device/graph_capture.h"

namespace rankscope::vgpu {
namespace {

constexpr int64_t kSwitchNs = 100;

/// The devices that cuCtxPushCurrent left, of the calling thread.
thread_local std::vector<int> t_pushed;

bool hasDevice(int device) {
    return device >= 0 && device < LocalProcess::instance().deviceCount();
}

int currentDevice() {
    const ThreadClock* thread = LocalProcess::clockIfAny();
    return thread ? thread->device : -1;
}

}  // namespace

}  // namespace rankscope::vgpu

using namespace rankscope::vgpu;

extern "C" {

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* isActive) {
    if (!hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    LocalProcess& process = LocalProcess::instance();
    if (flags) *flags = 0;
    if (!isActive) return CUDA_SUCCESS;
    std::lock_guard guard(process.mutex());
    *isActive = process.usesDevice(device);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *context = contextOf(device);
    return CUDA_SUCCESS;
}
/// A context lives until its process ends, whoever still holds it.
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    return hasDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// A thread without a clock has no context, and gets no clock by asking.
CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    const int device = currentDevice();
    *context = device < 0 ? nullptr : contextOf(device);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    RANKSCOPE_DRIVER_QUESTION("cuCtxSetCurrent", cuCtxSetCurrent, kSwitchNs);
    if (!context) return call.end(CUDA_SUCCESS);  // the device that runtime calls use stays
    const int device = deviceOf(context);
    if (!hasDevice(device)) return call.end(CUDA_ERROR_INVALID_CONTEXT);
    call.clock().device = device;
    return call.end(CUDA_SUCCESS);
}
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
    RANKSCOPE_DRIVER_QUESTION("cuCtxPushCurrent", cuCtxPushCurrent_v2, kSwitchNs);
    const int device = deviceOf(context);
    if (!hasDevice(device)) return call.end(CUDA_ERROR_INVALID_CONTEXT);
    t_pushed.push_back(call.clock().device);
    call.clock().device = device;
    return call.end(CUDA_SUCCESS);
}
CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
    RANKSCOPE_DRIVER_QUESTION("cuCtxPopCurrent", cuCtxPopCurrent_v2, kSwitchNs);
    if (t_pushed.empty()) return call.end(CUDA_ERROR_INVALID_CONTEXT);
    if (context) *context = contextOf(call.clock().device);
    call.clock().device = t_pushed.back();
    t_pushed.pop_back();
    return call.end(CUDA_SUCCESS);
}
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (currentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
    *device = currentDevice();
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return static_cast<CUresult>(cudaDeviceGetStreamPriorityRange(least, greatest));
}
CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
    return static_cast<CUresult>(cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)));
}
CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
    return static_cast<CUresult>(cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value));
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    int device = 0;
    const cudaError_t result = cudaStreamGetDevice(handle, &device);
    if (result == cudaSuccess) *context = contextOf(device);
    return static_cast<CUresult>(result);
}
CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    LocalProcess& process = LocalProcess::instance();
    ThreadClock& thread = process.clock();
    std::lock_guard guard(process.mutex());
    const LocalStream* stream = resolveStream(process, thread.device, handle, false);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    *status = static_cast<CUstreamCaptureStatus>(captureStatusOf(*stream));
    return CUDA_SUCCESS;
}

}  // extern "C"
