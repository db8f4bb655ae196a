// SPDX-License-Identifier: Apache-2.0
// Where programs that do not link the driver ask for its functions. What is not here is not found, which they have to
// expect of an older driver.
#include <cuda.h>

#include <map>
#include <string>

#include "reference/vgpu/device/api_call.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kQuickNs = 500;

/// By their names without version, which cuda.h makes into the newest there is of each.
const std::map<std::string, void*>& entryPoints() {
#define RANKSCOPE_ENTRY(function) \
    { #function, reinterpret_cast < void*>(&function) }
    static const auto* table = new std::map<std::string, void*>{
        RANKSCOPE_ENTRY(cuInit),
        RANKSCOPE_ENTRY(cuDriverGetVersion),
        RANKSCOPE_ENTRY(cuGetErrorString),
        RANKSCOPE_ENTRY(cuGetErrorName),
        RANKSCOPE_ENTRY(cuLogsRegisterCallback),
        RANKSCOPE_ENTRY(cuLogsUnregisterCallback),
        RANKSCOPE_ENTRY(cuDeviceGet),
        RANKSCOPE_ENTRY(cuDeviceGetCount),
        RANKSCOPE_ENTRY(cuDeviceGetName),
        RANKSCOPE_ENTRY(cuDeviceGetUuid),
        RANKSCOPE_ENTRY(cuDeviceTotalMem),
        RANKSCOPE_ENTRY(cuDeviceGetAttribute),
        RANKSCOPE_ENTRY(cuDeviceGetPCIBusId),
        RANKSCOPE_ENTRY(cuDeviceCanAccessPeer),
        RANKSCOPE_ENTRY(cuDevicePrimaryCtxGetState),
        RANKSCOPE_ENTRY(cuDevicePrimaryCtxRetain),
        RANKSCOPE_ENTRY(cuDevicePrimaryCtxRelease),
        RANKSCOPE_ENTRY(cuCtxGetCurrent),
        RANKSCOPE_ENTRY(cuCtxSetCurrent),
        RANKSCOPE_ENTRY(cuCtxPushCurrent),
        RANKSCOPE_ENTRY(cuCtxPopCurrent),
        RANKSCOPE_ENTRY(cuCtxGetDevice),
        RANKSCOPE_ENTRY(cuCtxGetStreamPriorityRange),
        RANKSCOPE_ENTRY(cuCtxGetLimit),
        RANKSCOPE_ENTRY(cuCtxSetLimit),
        RANKSCOPE_ENTRY(cuStreamGetCtx),
        RANKSCOPE_ENTRY(cuStreamIsCapturing),
        RANKSCOPE_ENTRY(cuStreamWriteValue32),
        RANKSCOPE_ENTRY(cuMemGetAllocationGranularity),
        RANKSCOPE_ENTRY(cuMemCreate),
        RANKSCOPE_ENTRY(cuMemRelease),
        RANKSCOPE_ENTRY(cuMemAddressReserve),
        RANKSCOPE_ENTRY(cuMemAddressFree),
        RANKSCOPE_ENTRY(cuMemMap),
        RANKSCOPE_ENTRY(cuMemUnmap),
        RANKSCOPE_ENTRY(cuMemSetAccess),
        RANKSCOPE_ENTRY(cuMemRetainAllocationHandle),
        RANKSCOPE_ENTRY(cuMemGetAllocationPropertiesFromHandle),
        RANKSCOPE_ENTRY(cuMemExportToShareableHandle),
        RANKSCOPE_ENTRY(cuMemImportFromShareableHandle),
        RANKSCOPE_ENTRY(cuMemGetAddressRange),
        RANKSCOPE_ENTRY(cuPointerGetAttribute),
        RANKSCOPE_ENTRY(cuMemsetD32Async),
        RANKSCOPE_ENTRY(cuModuleLoad),
        RANKSCOPE_ENTRY(cuModuleLoadData),
        RANKSCOPE_ENTRY(cuModuleLoadDataEx),
        RANKSCOPE_ENTRY(cuModuleLoadFatBinary),
        RANKSCOPE_ENTRY(cuModuleUnload),
        RANKSCOPE_ENTRY(cuModuleGetFunction),
        RANKSCOPE_ENTRY(cuFuncGetAttribute),
        RANKSCOPE_ENTRY(cuFuncSetAttribute),
        RANKSCOPE_ENTRY(cuFuncSetCacheConfig),
        RANKSCOPE_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor),
        RANKSCOPE_ENTRY(cuLaunchKernel),
        RANKSCOPE_ENTRY(cuLaunchCooperativeKernel),
        RANKSCOPE_ENTRY(cuLaunchKernelEx),
        RANKSCOPE_ENTRY(cuGetProcAddress),
        RANKSCOPE_ENTRY(cuGetExportTable),
    };
#undef RANKSCOPE_ENTRY
    return *table;
}

void* entryPoint(const char* name) {
    const auto found = entryPoints().find(name);
    return found == entryPoints().end() ? nullptr : found->second;
}

cudaError_t find(ApiCall& call, const char* name, void** function, cudaDriverEntryPointQueryResult* result) {
    if (!name || !function) return call.end(cudaErrorInvalidValue);
    *function = entryPoint(name);
    if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return call.end(cudaSuccess);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int, cuuint64_t,
                                  CUdriverProcAddressQueryResult* result) {
    if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
    *function = entryPoint(name);
    if (result) *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                              cudaDriverEntryPointQueryResult* result) {
    RANKSCOPE_RUNTIME_QUESTION("cudaGetDriverEntryPoint", cudaGetDriverEntryPoint_v11030, kQuickNs);
    return find(call, name, function, result);
}
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                                       cudaDriverEntryPointQueryResult* result) {
    RANKSCOPE_RUNTIME_QUESTION("cudaGetDriverEntryPointByVersion", cudaGetDriverEntryPointByVersion_v12050, kQuickNs);
    return find(call, name, function, result);
}

}  // extern "C"
