// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <cstring>

#include "reference/vgpu/device/device_model.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/kernel_registry.h"

using namespace rankscope::vgpu;

namespace {

// What guards do around such a call, with it or without, costs nothing.
constexpr int64_t kQuickNs = 0, kPropertiesNs = 2000;
constexpr int kMemoryBusBits = 5120, kMemoryClockKhz = 1593000, kMostBlocks = 32;  // as the A100 with 80 GB says

bool known(ApiCall& call, int device) {
    return device >= 0 && device < call.process().deviceCount();
}

/// CUDA's error alone tells neither how many there are nor that there could be more.
void tellOfDevices(const LocalProcess& process, int asked) {
    static std::atomic<bool> isTold{false};
    if (isTold.exchange(true)) return;
    std::fprintf(
        stderr,
        "rankscope virtual GPUs: rank %d asks for device %d of a machine that has %d: CUDA's error is 'invalid "
        "device ordinal'\n"
        "  hint: start no more ranks on a machine than that, or give it more: RANKSCOPE_SCENARIO names a JSON "
        "file with {\"cluster\": {\"ranks_per_node\": %d}}\n",
        process.rank(), asked, process.deviceCount(), asked + 1);
}

int attribute(const DeviceModel& model, cudaDeviceAttr which) {
    switch (which) {
        case cudaDevAttrMaxThreadsPerBlock:
            return 1024;
        case cudaDevAttrMaxBlockDimX:
        case cudaDevAttrMaxBlockDimY:
            return 1024;
        case cudaDevAttrMaxBlockDimZ:
            return 64;
        case cudaDevAttrMaxGridDimX:
            return 2147483647;
        case cudaDevAttrMaxGridDimY:
        case cudaDevAttrMaxGridDimZ:
            return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            return 49152;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            return model.sharedPerBlockOptin;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            return model.sharedPerMultiprocessor;
        case cudaDevAttrWarpSize:
            return 32;
        case cudaDevAttrMultiProcessorCount:
            return model.multiprocessors;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            return 2048;
        case cudaDevAttrMaxRegistersPerBlock:
        case cudaDevAttrMaxRegistersPerMultiprocessor:
            return 65536;
        case cudaDevAttrClockRate:
            return 1980000;
        case cudaDevAttrComputeCapabilityMajor:
            return model.major;
        case cudaDevAttrComputeCapabilityMinor:
            return model.minor;
        case cudaDevAttrL2CacheSize:
            return model.l2Bytes;
        case cudaDevAttrGlobalMemoryBusWidth:
            return kMemoryBusBits;
        case cudaDevAttrMemoryClockRate:
            return kMemoryClockKhz;
        case cudaDevAttrMaxBlocksPerMultiprocessor:
            return kMostBlocks;
        case cudaDevAttrReservedSharedMemoryPerBlock:
            return 1024;
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrManagedMemory:
        case cudaDevAttrCooperativeLaunch:
        case cudaDevAttrMemoryPoolsSupported:
            return 1;
        case cudaDevAttrAsyncEngineCount:
            return 3;
        default:
            return 0;
    }
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
    RANKSCOPE_RUNTIME_QUESTION("cudaGetDeviceCount", cudaGetDeviceCount_v3020, kQuickNs);
    if (!count) return call.end(cudaErrorInvalidValue);
    *count = call.process().deviceCount();
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaSetDevice(int device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaSetDevice", cudaSetDevice_v3020, kQuickNs);
    if (!known(call, device)) {
        tellOfDevices(call.process(), device);
        return call.end(cudaErrorInvalidDevice);
    }
    call.clock().device = device;
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned, unsigned) {
    RANKSCOPE_RUNTIME_QUESTION("cudaInitDevice", cudaInitDevice_v12000, kQuickNs);
    return call.end(known(call, device) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaGetDevice", cudaGetDevice_v3020, kQuickNs);
    if (!device) return call.end(cudaErrorInvalidValue);
    *device = call.clock().device;
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned) {
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned* flags) {
    *flags = 0;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceReset(void) {
    return cudaDeviceSynchronize();
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaGetDeviceProperties", cudaGetDeviceProperties_v12000, kPropertiesNs);
    if (!properties) return call.end(cudaErrorInvalidValue);
    if (!known(call, device)) return call.end(cudaErrorInvalidDevice);
    std::memset(properties, 0, sizeof *properties);
    std::snprintf(properties->name, sizeof properties->name, "Rankscope Virtual GPU");
    properties->totalGlobalMem = static_cast<size_t>(call.process().cluster().memoryGb * 1e9);
    properties->sharedMemPerBlock = 49152;
    const DeviceModel model = deviceModel(call.process().cluster());
    properties->sharedMemPerBlockOptin = static_cast<size_t>(model.sharedPerBlockOptin);
    properties->sharedMemPerMultiprocessor = static_cast<size_t>(model.sharedPerMultiprocessor);
    properties->reservedSharedMemPerBlock = 1024;
    properties->maxBlocksPerMultiProcessor = kMostBlocks;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 2147483647;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = model.major;
    properties->minor = model.minor;
    properties->multiProcessorCount = model.multiprocessors;
    properties->concurrentKernels = properties->unifiedAddressing = properties->managedMemory =
        properties->canMapHostMemory = 1;
    properties->streamPrioritiesSupported = properties->cooperativeLaunch = 1;
    properties->asyncEngineCount = 3;
    properties->pciBusID = device + 1;
    properties->pciDomainID = call.process().node();
    properties->memoryBusWidth = kMemoryBusBits;
    properties->l2CacheSize = model.l2Bytes;
    const int identity[4] = {0x75706776, call.process().rank(), device, 0};  // "vgpu"
    std::memcpy(properties->uuid.bytes, identity, sizeof properties->uuid.bytes);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaDeviceGetAttribute", cudaDeviceGetAttribute_v5000, kQuickNs);
    if (!value) return call.end(cudaErrorInvalidValue);
    if (!known(call, device)) return call.end(cudaErrorInvalidDevice);
    *value = which == cudaDevAttrPciBusId ? device + 1 : attribute(deviceModel(call.process().cluster()), which);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char* text, int length, int device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaDeviceGetPCIBusId", cudaDeviceGetPCIBusId_v4010, kQuickNs);
    if (!known(call, device)) return call.end(cudaErrorInvalidDevice);
    std::snprintf(text, static_cast<size_t>(length), "%04x:%02x:00.0", static_cast<unsigned>(call.process().node()),
                  device + 1);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    RANKSCOPE_RUNTIME_QUESTION("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange_v5050, kQuickNs);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 1;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int, unsigned) {
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int) {
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceSetLimit(cudaLimit, size_t) {
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceGetLimit(size_t* value, cudaLimit) {
    *value = 0;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDeviceSetCacheConfig(cudaFuncCache) {
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) {
    if (!version) return lastError() = cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
    if (!version) return lastError() = cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
    RANKSCOPE_RUNTIME_QUESTION("cudaFuncGetAttributes", cudaFuncGetAttributes_v3020, kQuickNs);
    if (!findKernel(function)) return call.end(cudaErrorInvalidDeviceFunction);
    std::memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = attributes->ptxVersion = call.process().cluster().computeCapability;
    attributes->maxDynamicSharedSizeBytes = 49152;
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int) {
    return findKernel(function) ? cudaSuccess : lastError() = cudaErrorInvalidDeviceFunction;
}
cudaError_t CUDARTAPI cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
    return findKernel(function) ? cudaSuccess : lastError() = cudaErrorInvalidDeviceFunction;
}
cudaError_t CUDARTAPI cudaFuncGetName(const char** name, const void* function) {
    const Kernel* kernel = findKernel(function);
    if (!kernel) return lastError() = cudaErrorInvalidDeviceFunction;
    *name = kernel->name.c_str();
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int blockSize, size_t) {
    *blocks = blockSize > 0 ? 2048 / blockSize : 0;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int blockSize,
                                                                             size_t, unsigned) {
    *blocks = blockSize > 0 ? 2048 / blockSize : 0;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaProfilerStart(void) {
    RANKSCOPE_RUNTIME_CALL("cudaProfilerStart", cudaProfilerStart_v4000, 0);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaProfilerStop(void) {
    RANKSCOPE_RUNTIME_CALL("cudaProfilerStop", cudaProfilerStop_v4000, 0);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaGetLastError(void) {
    return std::exchange(lastError(), cudaSuccess);
}
cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
    return lastError();
}

const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define RANKSCOPE_NAME(code) \
    case code:               \
        return #code;
        RANKSCOPE_NAME(cudaSuccess)
        RANKSCOPE_NAME(cudaErrorInvalidValue)
        RANKSCOPE_NAME(cudaErrorMemoryAllocation)
        RANKSCOPE_NAME(cudaErrorInvalidConfiguration)
        RANKSCOPE_NAME(cudaErrorInvalidSymbol)
        RANKSCOPE_NAME(cudaErrorInvalidDeviceFunction)
        RANKSCOPE_NAME(cudaErrorNoDevice)
        RANKSCOPE_NAME(cudaErrorInvalidDevice)
        RANKSCOPE_NAME(cudaErrorInvalidResourceHandle)
        RANKSCOPE_NAME(cudaErrorNotReady)
        RANKSCOPE_NAME(cudaErrorNotSupported)
        RANKSCOPE_NAME(cudaErrorMissingConfiguration)
        RANKSCOPE_NAME(cudaErrorHostMemoryAlreadyRegistered)
        RANKSCOPE_NAME(cudaErrorHostMemoryNotRegistered)
        RANKSCOPE_NAME(cudaErrorStreamCaptureUnsupported)
        RANKSCOPE_NAME(cudaErrorStreamCaptureInvalidated)
        RANKSCOPE_NAME(cudaErrorIllegalState)
        RANKSCOPE_NAME(cudaErrorUnknown)
#undef RANKSCOPE_NAME
        default:
            return "unrecognized error code";
    }
}

const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorInvalidConfiguration:
            return "invalid configuration argument";
        case cudaErrorInvalidDeviceFunction:
            return "invalid device function";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal";
        case cudaErrorInvalidResourceHandle:
            return "invalid resource handle";
        case cudaErrorNotReady:
            return "device not ready";
        case cudaErrorNotSupported:
            return "operation not supported";
        default:
            return cudaGetErrorName(error);
    }
}

// For workloads: see the README.
void rankscopeVgpuHostWork(int64_t ns) {
    LocalProcess& process = LocalProcess::instance();
    injectOnce();
    ThreadClock& thread = process.clock();
    if (ns > 0) thread.ns += ns;
    process.publish(thread);
}

}  // extern "C"
