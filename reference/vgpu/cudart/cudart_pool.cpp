// SPDX-License-Identifier: Apache-2.0
// Memory pools. Memory in the order of a stream is in cudart_memory.cpp.
#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/memory_pool.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kQuickNs = 200, kCreateNs = 5000;

bool isDevice(ApiCall& call, int device) {
    return device >= 0 && device < call.process().deviceCount();
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaDeviceGetDefaultMemPool", cudaDeviceGetDefaultMemPool_v11020, kQuickNs);
    if (!pool) return call.end(cudaErrorInvalidValue);
    if (!isDevice(call, device)) return call.end(cudaErrorInvalidDevice);
    *pool = handleOf(defaultPool(device));
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    RANKSCOPE_RUNTIME_QUESTION("cudaDeviceGetMemPool", cudaDeviceGetMemPool_v11020, kQuickNs);
    if (!pool) return call.end(cudaErrorInvalidValue);
    if (!isDevice(call, device)) return call.end(cudaErrorInvalidDevice);
    *pool = handleOf(currentPool(device));
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
    RANKSCOPE_RUNTIME_CALL("cudaDeviceSetMemPool", cudaDeviceSetMemPool_v11020, kQuickNs);
    MemoryPool* pool = findPool(handle);
    if (!isDevice(call, device)) return call.end(cudaErrorInvalidDevice);
    if (!pool || pool->device != device) return call.end(cudaErrorInvalidValue);
    setCurrentPool(device, pool);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    RANKSCOPE_RUNTIME_CALL("cudaMemPoolCreate", cudaMemPoolCreate_v11020, kCreateNs);
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned)
        return call.end(cudaErrorInvalidValue);
    // A pool whose memory other processes can open, or that lies on the host, would have to be shared.
    if (properties->handleTypes != cudaMemHandleTypeNone || properties->location.type != cudaMemLocationTypeDevice)
        return call.end(cudaErrorNotSupported);
    if (!isDevice(call, properties->location.id)) return call.end(cudaErrorInvalidDevice);
    *pool = handleOf(createPool(properties->location.id));
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t handle) {
    RANKSCOPE_RUNTIME_CALL("cudaMemPoolDestroy", cudaMemPoolDestroy_v11020, kCreateNs);
    return call.end(destroyPool(findPool(handle)) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t CUDARTAPI cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr which, void* value) {
    RANKSCOPE_RUNTIME_QUESTION("cudaMemPoolGetAttribute", cudaMemPoolGetAttribute_v11020, kQuickNs);
    const MemoryPool* pool = findPool(handle);
    return call.end(pool ? getPoolAttribute(*pool, which, value) : cudaErrorInvalidValue);
}
cudaError_t CUDARTAPI cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr which, void* value) {
    RANKSCOPE_RUNTIME_CALL("cudaMemPoolSetAttribute", cudaMemPoolSetAttribute_v11020, kQuickNs);
    MemoryPool* pool = findPool(handle);
    return call.end(pool ? setPoolAttribute(*pool, which, value) : cudaErrorInvalidValue);
}
cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t handle, size_t) {
    RANKSCOPE_RUNTIME_CALL("cudaMemPoolTrimTo", cudaMemPoolTrimTo_v11020, kQuickNs);
    return call.end(findPool(handle) ? cudaSuccess : cudaErrorInvalidValue);  // nothing was kept back
}
/// Devices of a process see each other's memory in any case; the owner cannot be shut out.
cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions, size_t count) {
    RANKSCOPE_RUNTIME_CALL("cudaMemPoolSetAccess", cudaMemPoolSetAccess_v11020, kQuickNs);
    const MemoryPool* pool = findPool(handle);
    if (!pool || (count > 0 && !descriptions)) return call.end(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++) {
        const cudaMemLocation& location = descriptions[i].location;
        if (location.type != cudaMemLocationTypeDevice || !isDevice(call, location.id))
            return call.end(cudaErrorInvalidValue);
        if (location.id == pool->device && descriptions[i].flags == cudaMemAccessFlagsProtNone)
            return call.end(cudaErrorInvalidValue);
    }
    return call.end(cudaSuccess);
}

// Graphs hold no memory of their own: what is allocated while a stream captures is allocated at once.
cudaError_t CUDARTAPI cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType which, void* value) {
    RANKSCOPE_RUNTIME_CALL("cudaDeviceGetGraphMemAttribute", cudaDeviceGetGraphMemAttribute_v11040, kQuickNs);
    if (!isDevice(call, device)) return call.end(cudaErrorInvalidDevice);
    if (!value || which < cudaGraphMemAttrUsedMemCurrent || which > cudaGraphMemAttrReservedMemHigh)
        return call.end(cudaErrorInvalidValue);
    *static_cast<uint64_t*>(value) = 0;
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType which, void* value) {
    RANKSCOPE_RUNTIME_CALL("cudaDeviceSetGraphMemAttribute", cudaDeviceSetGraphMemAttribute_v11040, kQuickNs);
    if (!isDevice(call, device)) return call.end(cudaErrorInvalidDevice);
    // Only the high marks can be reset, by writing zero.
    const bool isHigh = which == cudaGraphMemAttrUsedMemHigh || which == cudaGraphMemAttrReservedMemHigh;
    const bool resets = isHigh && value && *static_cast<uint64_t*>(value) == 0;
    return call.end(resets ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t CUDARTAPI cudaDeviceGraphMemTrim(int device) {
    RANKSCOPE_RUNTIME_CALL("cudaDeviceGraphMemTrim", cudaDeviceGraphMemTrim_v11040, kQuickNs);
    return call.end(isDevice(call, device) ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // extern "C"
