// SPDX-License-Identifier: Apache-2.0
// Registration and launch of kernels, as nvcc's stubs call them.
#include <cstdlib>
#include <vector>

#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/framework_library.h"
#include "reference/vgpu/device/kernel_registry.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/device/not_executed.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kLaunchCostNs = 2200;

struct CallConfiguration {
    dim3 grid, block;
    size_t sharedBytes;
    cudaStream_t stream;
};
thread_local std::vector<CallConfiguration> t_configurations;

/// What the subscriber sees as parameters, laid out as in the headers CUPTI generates.
struct LaunchParameters {
    const void* func;
    dim3 gridDim, blockDim;
    void** args;
    size_t sharedMem;
    cudaStream_t stream;
};

cudaError_t launch(CUpti_CallbackId id, const char* apiName, const void* function, dim3 grid, dim3 block, void** args,
                   size_t sharedBytes, cudaStream_t handle, bool perThread) {
    const Kernel* kernel = findKernel(function);
    LaunchParameters parameters{function, grid, block, args, sharedBytes, handle};
    ApiCall call(CUPTI_CB_DOMAIN_RUNTIME_API, id, apiName, kLaunchCostNs, &parameters,
                 kernel ? kernel->name.c_str() : nullptr);
    if (!kernel) return call.end(cudaErrorInvalidDeviceFunction);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x * block.y * block.z == 0 ||
        block.x * block.y * block.z > 1024)
        return call.end(cudaErrorInvalidConfiguration);
    if (!kernel->wasLaunched.load(std::memory_order_relaxed) && !kernel->wasLaunched.exchange(true))
        tellOfForeignKernel(*kernel);
    LocalProcess& process = call.process();
    LocalStream* stream;
    {
        std::lock_guard guard(process.mutex());
        stream = resolveStream(process, call.clock().device, handle, perThread);
    }
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    process.throttle(*stream);
    std::lock_guard guard(process.mutex());
    submitKernel(call, *stream, {kernel, kernel->name.c_str(), grid, block, sharedBytes, args});
    return call.end(cudaSuccess);
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* fatCubin) {
    auto** handle = static_cast<void**>(std::malloc(sizeof(void*)));
    *handle = fatCubin;
    frameworkMayHaveCome();
    return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) {
    std::free(handle);
}
char __cudaInitModule(void**) {
    return 1;
}
void __cudaRegisterFunction(void**, const char* hostFunction, char*, const char* deviceName, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
    registerKernel(hostFunction, deviceName);
}
void __cudaRegisterVar(void**, char* hostVariable, char*, const char*, int, size_t bytes, int, int) {
    registerSymbol(hostVariable, bytes);
}
void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
void __cudaRegisterManagedVar(void**, void** hostPointer, char*, const char*, int, size_t bytes, int, int) {
    *hostPointer = std::calloc(1, bytes);
}
void __cudaRegisterUnifiedTable(void**, void*) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedBytes, CUstream_st* stream) {
    t_configurations.push_back({grid, block, sharedBytes, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedBytes, void* stream) {
    if (t_configurations.empty()) return cudaErrorMissingConfiguration;
    CallConfiguration top = t_configurations.back();
    t_configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *sharedBytes = top.sharedBytes;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* hostFunction) {
    Kernel* kernel = findKernel(hostFunction);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    *handle = reinterpret_cast<cudaKernel_t>(kernel);
    return cudaSuccess;
}

// What nvcc 13 compiles a launch to. CUPTI 13.0 tells it as cudaLaunchKernel, as seen on an H100.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                               cudaStream_t stream) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel", kernel, grid, block, args,
                  sharedBytes, stream, false);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                    cudaStream_t stream) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000, "cudaLaunchKernel_ptsz", kernel, grid, block,
                  args, sharedBytes, stream, true);
}
cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t sharedBytes,
                                       cudaStream_t stream) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel", function, grid, block, args,
                  sharedBytes, stream, false);
}
cudaError_t CUDARTAPI cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** args,
                                            size_t sharedBytes, cudaStream_t stream) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000, "cudaLaunchKernel_ptsz", function, grid, block,
                  args, sharedBytes, stream, true);
}
cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                                  size_t sharedBytes, cudaStream_t stream) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000, "cudaLaunchCooperativeKernel", function,
                  grid, block, args, sharedBytes, stream, false);
}
cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060, "cudaLaunchKernelExC", function, config->gridDim,
                  config->blockDim, args, config->dynamicSmemBytes, config->stream, false);
}
cudaError_t CUDARTAPI cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function, void** args) {
    return launch(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060, "cudaLaunchKernelExC_ptsz", function,
                  config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream, true);
}

// For the mathematical libraries (math/): what to give to cudaLaunchKernel with a KernelCost as the only argument.
const void* rankscopeVgpuPricedKernel(const char* name) {
    return pricedKernel(name);
}

// For workloads: see the README.
void rankscopeVgpuKernelBody(const void* hostFunction, void (*body)(void** args)) {
    if (Kernel* kernel = findKernel(hostFunction)) kernel->body = body;
}
void rankscopeVgpuKernelStructs(const void* hostFunction, size_t largestBytes) {
    if (Kernel* kernel = findKernel(hostFunction)) kernel->largestStruct = largestBytes;
}

}  // extern "C"
