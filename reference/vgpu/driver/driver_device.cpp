// SPDX-License-Identifier: Apache-2.0
// Devices and errors. What the runtime API tells as well is asked of it, so that both always agree; those calls are the
// runtime's in a trace.
#include <cuda.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/engine/public_api.h"

using namespace rankscope::vgpu;

namespace {

CUresult resultOf(cudaError_t error) {
    return static_cast<CUresult>(error);  // both number their errors alike
}

bool isDevice(int device) {
    return device >= 0 && device < LocalProcess::instance().deviceCount();
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuInit(unsigned flags) {
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuDriverGetVersion(int* version) {
    return resultOf(cudaDriverGetVersion(version));
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (!isDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetCount(int* count) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = LocalProcess::instance().deviceCount();
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
    if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!isDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) std::snprintf(name, static_cast<size_t>(length), "%s", properties.name);
    return resultOf(error);
}
CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    if (!isDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) std::memcpy(uuid->bytes, properties.uuid.bytes, sizeof uuid->bytes);
    return resultOf(error);
}
CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!isDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = static_cast<size_t>(LocalProcess::instance().cluster().memoryGb * 1e9);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
    return resultOf(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(which), device));
}
CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
    return resultOf(cudaDeviceGetPCIBusId(text, length, device));
}
CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    return resultOf(cudaDeviceCanAccessPeer(can, device, peer));
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = cudaGetErrorString(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    switch (error) {
#define RANKSCOPE_NAME(code) \
    case code:               \
        *text = #code;       \
        return CUDA_SUCCESS;
        RANKSCOPE_NAME(CUDA_SUCCESS)
        RANKSCOPE_NAME(CUDA_ERROR_INVALID_VALUE)
        RANKSCOPE_NAME(CUDA_ERROR_OUT_OF_MEMORY)
        RANKSCOPE_NAME(CUDA_ERROR_NO_DEVICE)
        RANKSCOPE_NAME(CUDA_ERROR_INVALID_DEVICE)
        RANKSCOPE_NAME(CUDA_ERROR_INVALID_IMAGE)
        RANKSCOPE_NAME(CUDA_ERROR_INVALID_CONTEXT)
        RANKSCOPE_NAME(CUDA_ERROR_INVALID_HANDLE)
        RANKSCOPE_NAME(CUDA_ERROR_NOT_FOUND)
        RANKSCOPE_NAME(CUDA_ERROR_NOT_READY)
        RANKSCOPE_NAME(CUDA_ERROR_NOT_SUPPORTED)
        RANKSCOPE_NAME(CUDA_ERROR_UNKNOWN)
#undef RANKSCOPE_NAME
        default:
            *text = nullptr;
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// Only a CUDA runtime asks for these tables, so there is another one than ours. It tells the program of an error then.
CUresult CUDAAPI cuGetExportTable(const void**, const CUuuid*) {
    static std::atomic<bool> isTold{false};
    if (!isTold.exchange(true))
        std::fprintf(stderr,
                     "rankscope virtual GPUs: the program brings a CUDA runtime of its own, which finds no device "
                     "here: one linked in (link it with -cudart shared), or one of a release before 12 (take wheels or "
                     "libraries for CUDA 12 or 13)\n");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/// Tells of errors that the driver logs; this one logs none.
CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
    if (!callback) return CUDA_ERROR_INVALID_VALUE;
    if (handle) *handle = nullptr;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle) {
    return CUDA_SUCCESS;
}

}  // extern "C"
