// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/api_kind.h"

namespace rankscope::collector {

store::ApiKind apiKindOf(std::string_view name) noexcept {
    using store::ApiKind;
    const auto has = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (has("GraphLaunch")) return ApiKind::graphLaunch;
    if (has("LaunchHostFunc")) return ApiKind::other;
    if (has("Launch")) return ApiKind::launch;
    if (has("Synchronize")) return ApiKind::synchronize;
    if (has("Attribute") || has("MemcpyNode") || has("MemsetNode") || has("GetInfo")) return ApiKind::other;
    if (has("Memcpy")) return ApiKind::copy;
    if (has("Memset")) return ApiKind::set;
    if (has("EventRecord") || has("WaitEvent")) return ApiKind::event;
    if (has("Malloc") || has("MemAlloc") || has("HostAlloc") || has("MemCreate")) return ApiKind::allocate;
    if (has("cudaFree") || has("MemFree") || has("MemRelease") || has("FreeHost")) return ApiKind::free;
    return ApiKind::other;
}

std::string_view hookedCallName(capture::CudaApi api) noexcept {
    using capture::CudaApi;
    switch (api) {
        case CudaApi::unknown:
            break;
        case CudaApi::launchKernel:
            return "cudaLaunchKernel";
        case CudaApi::launchKernelExC:
            return "cudaLaunchKernelExC";
        case CudaApi::launchCooperative:
            return "cudaLaunchCooperativeKernel";
        case CudaApi::graphLaunch:
            return "cudaGraphLaunch";
        case CudaApi::malloc:
            return "cudaMalloc";
        case CudaApi::free:
            return "cudaFree";
        case CudaApi::mallocAsync:
            return "cudaMallocAsync";
        case CudaApi::freeAsync:
            return "cudaFreeAsync";
        case CudaApi::mallocHost:
            return "cudaMallocHost";
        case CudaApi::freeHost:
            return "cudaFreeHost";
        case CudaApi::hostAlloc:
            return "cudaHostAlloc";
        case CudaApi::mallocManaged:
            return "cudaMallocManaged";
        case CudaApi::memcpy:
            return "cudaMemcpy";
        case CudaApi::memcpyAsync:
            return "cudaMemcpyAsync";
        case CudaApi::memset:
            return "cudaMemset";
        case CudaApi::memsetAsync:
            return "cudaMemsetAsync";
        case CudaApi::memcpyPeer:
            return "cudaMemcpyPeer";
        case CudaApi::memcpyPeerAsync:
            return "cudaMemcpyPeerAsync";
        case CudaApi::memcpy2D:
            return "cudaMemcpy2D";
        case CudaApi::memcpy2DAsync:
            return "cudaMemcpy2DAsync";
        case CudaApi::streamSynchronize:
            return "cudaStreamSynchronize";
        case CudaApi::eventSynchronize:
            return "cudaEventSynchronize";
        case CudaApi::deviceSynchronize:
            return "cudaDeviceSynchronize";
        case CudaApi::streamWaitEvent:
            return "cudaStreamWaitEvent";
        case CudaApi::eventRecord:
            return "cudaEventRecord";
        case CudaApi::graphInstantiate:
            return "cudaGraphInstantiate";
        case CudaApi::profilerStart:
            return "cudaProfilerStart";
        case CudaApi::profilerStop:
            return "cudaProfilerStop";
    }
    return "CUDA call";
}

}  // namespace rankscope::collector
