// SPDX-License-Identifier: Apache-2.0
// Modules, their functions, and launches of them. A CUfunction is a Kernel.
#include <cuda.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/kernel_registry.h"
#include "reference/vgpu/driver/module.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kLaunchCostNs = 2200;  // as cudaLaunchKernel
constexpr int64_t kLoadNs = 100'000;     // assumed: a module is copied to the device

/// What the subscriber sees as parameters, laid out as in the headers CUPTI generates.
struct LaunchParameters {
    CUfunction f;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void** kernelParams;
    void** extra;
};

CUresult launch(ApiCall& call, const LaunchParameters& asked) {
    const Kernel* kernel = findKernel(asked.f);
    if (!kernel) return call.end(CUDA_ERROR_INVALID_HANDLE);
    const dim3 grid(asked.gridDimX, asked.gridDimY, asked.gridDimZ),
        block(asked.blockDimX, asked.blockDimY, asked.blockDimZ);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x * block.y * block.z == 0 ||
        block.x * block.y * block.z > 1024)
        return call.end(CUDA_ERROR_INVALID_VALUE);
    LocalProcess& process = call.process();
    LocalStream* stream;
    {
        std::lock_guard guard(process.mutex());
        stream = resolveStream(process, call.clock().device, asked.hStream, false);
    }
    if (!stream) return call.end(CUDA_ERROR_INVALID_HANDLE);
    process.throttle(*stream);
    std::lock_guard guard(process.mutex());
    submitKernel(call, *stream, {kernel, kernel->name.c_str(), grid, block, asked.sharedMemBytes, asked.kernelParams});
    return call.end(CUDA_SUCCESS);
}

CUresult load(ApiCall& call, CUmodule* module, const void* image) {
    if (!module || !image) return call.end(CUDA_ERROR_INVALID_VALUE);
    *module = reinterpret_cast<CUmodule>(loadModule(image));
    return call.end(*module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE);
}

Module* moduleOf(CUmodule handle) {
    return reinterpret_cast<Module*>(handle);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
    RANKSCOPE_DRIVER_CALL("cuModuleLoadData", cuModuleLoadData, kLoadNs);
    return load(call, module, image);
}
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
    RANKSCOPE_DRIVER_CALL("cuModuleLoadDataEx", cuModuleLoadDataEx, kLoadNs);
    return load(call, module, image);
}
CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    RANKSCOPE_DRIVER_CALL("cuModuleLoadFatBinary", cuModuleLoadFatBinary, kLoadNs);
    return load(call, module, image);
}
CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* path) {
    RANKSCOPE_DRIVER_CALL("cuModuleLoad", cuModuleLoad, kLoadNs);
    if (!path) return call.end(CUDA_ERROR_INVALID_VALUE);
    std::ifstream file(path, std::ios::binary);
    if (!file) return call.end(CUDA_ERROR_FILE_NOT_FOUND);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    return image.size() < kSmallestImage ? call.end(CUDA_ERROR_INVALID_IMAGE) : load(call, module, image.c_str());
}
CUresult CUDAAPI cuModuleUnload(CUmodule module) {
    RANKSCOPE_DRIVER_CALL("cuModuleUnload", cuModuleUnload, kLoadNs);
    return call.end(unloadModule(moduleOf(module)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(kernelOf(moduleOf(module), name));
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
    if (!findKernel(function)) return CUDA_ERROR_INVALID_HANDLE;
    cudaFuncAttributes attributes;
    if (!value || cudaFuncGetAttributes(&attributes, function) != cudaSuccess) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = attributes.maxThreadsPerBlock;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(attributes.sharedSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            *value = static_cast<int>(attributes.constSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(attributes.localSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = attributes.numRegs;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = attributes.binaryVersion;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = attributes.maxDynamicSharedSizeBytes;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}
// Hints for code that is not executed.
CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int) {
    return findKernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
    return findKernel(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int blockSize,
                                                             size_t sharedBytes) {
    return static_cast<CUresult>(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, blockSize, sharedBytes));
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                                unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream, void** args,
                                void** extra) {
    const LaunchParameters asked{function, gridX,       gridY,  gridZ, blockX, blockY,
                                 blockZ,   sharedBytes, stream, args,  extra};
    const Kernel* kernel = findKernel(function);
    ApiCall call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel", kLaunchCostNs,
                 &asked, kernel ? kernel->name.c_str() : nullptr);
    return launch(call, asked);
}
CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                           unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                                           CUstream stream, void** args) {
    RANKSCOPE_DRIVER_CALL("cuLaunchCooperativeKernel", cuLaunchCooperativeKernel, kLaunchCostNs);
    return launch(call, {function, gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes, stream, args, nullptr});
}
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** args, void** extra) {
    RANKSCOPE_DRIVER_CALL("cuLaunchKernelEx", cuLaunchKernelEx, kLaunchCostNs);
    if (!config) return call.end(CUDA_ERROR_INVALID_VALUE);
    return launch(call, {function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                         config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, args, extra});
}

}  // extern "C"
