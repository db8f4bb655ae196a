// SPDX-License-Identifier: Apache-2.0
// Virtual memory management, and what is known about a pointer.
#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/context.h"
#include "reference/vgpu/device/mapping.h"
#include "reference/vgpu/device/memory.h"

using namespace rankscope::vgpu;

namespace {

// Assumed: setting up page tables costs the driver about as much as a small allocation does, addresses alone little.
constexpr int64_t kAddressNs = 2000, kMapNs = 20000;

void* pointerOf(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}

bool isOwnMemory(const CUmemAllocationProp& properties) {
    return properties.type == CU_MEM_ALLOCATION_TYPE_PINNED && properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
    if (!bytes || !properties) return CUDA_ERROR_INVALID_VALUE;
    *bytes = kMappingGranule;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                             unsigned long long flags) {
    RANKSCOPE_DRIVER_CALL("cuMemCreate", cuMemCreate, kMapNs);
    if (!handle || !properties || flags || bytes == 0 || bytes % kMappingGranule)
        return call.end(CUDA_ERROR_INVALID_VALUE);
    // That memory could be handed out as a file is asked for beforehand, also by those who never do; doing it fails.
    constexpr int kHandles = CU_MEM_HANDLE_TYPE_NONE | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (!isOwnMemory(*properties) || (properties->requestedHandleTypes & ~kHandles))
        return call.end(CUDA_ERROR_NOT_SUPPORTED);
    const LocalProcess& process = call.process();
    if (properties->location.id < 0 || properties->location.id >= process.deviceCount())
        return call.end(CUDA_ERROR_INVALID_DEVICE);
    *handle = createPhysical(properties->location.id, bytes, static_cast<uint64_t>(process.cluster().memoryGb * 1e9));
    return call.end(*handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
    RANKSCOPE_DRIVER_CALL("cuMemRelease", cuMemRelease, kMapNs);
    return call.end(releasePhysical(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                                     unsigned long long flags) {
    RANKSCOPE_DRIVER_CALL("cuMemAddressReserve", cuMemAddressReserve, kAddressNs);
    if (!address || flags || bytes == 0 || bytes % kMappingGranule) return call.end(CUDA_ERROR_INVALID_VALUE);
    if (alignment & (alignment - 1)) return call.end(CUDA_ERROR_INVALID_VALUE);
    void* base = reserveRange(bytes, std::max(alignment, kMappingGranule));
    *address = reinterpret_cast<CUdeviceptr>(base);
    return call.end(base ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    RANKSCOPE_DRIVER_CALL("cuMemAddressFree", cuMemAddressFree, kAddressNs);
    return call.end(freeRange(pointerOf(address), bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
    RANKSCOPE_DRIVER_CALL("cuMemMap", cuMemMap, kMapNs);
    if (flags || offset) return call.end(CUDA_ERROR_INVALID_VALUE);  // CUDA allows no other offset either
    return call.end(mapPhysical(pointerOf(address), bytes, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes) {
    RANKSCOPE_DRIVER_CALL("cuMemUnmap", cuMemUnmap, kMapNs);
    return call.end(unmapPhysical(pointerOf(address), bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
/// Every device of the process reaches what is mapped, whatever is asked for.
CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions, size_t count) {
    RANKSCOPE_DRIVER_CALL("cuMemSetAccess", cuMemSetAccess, kMapNs);
    if (!descriptions || count == 0) return call.end(CUDA_ERROR_INVALID_VALUE);
    return call.end(isMapped(pointerOf(address), bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    *handle = retainPhysicalAt(address);
    return *handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
    const auto memory = findPhysical(handle);
    if (!properties || !memory) return CUDA_ERROR_INVALID_VALUE;
    *properties = {};
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties->location.id = memory->device;
    return CUDA_SUCCESS;
}
// No memory is shared between processes; callers have to be ready for machines that cannot.
CUresult CUDAAPI cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                              unsigned long long) {
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
    const Allocation allocation = findAllocation(pointerOf(address));
    if (allocation.kind == MemoryKind::pageable) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = reinterpret_cast<CUdeviceptr>(allocation.base);
    if (bytes) *bytes = allocation.bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void* value, CUpointer_attribute which, CUdeviceptr address) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    const Allocation allocation = findAllocation(pointerOf(address));
    if (allocation.kind == MemoryKind::pageable) return CUDA_ERROR_INVALID_VALUE;
    const auto give = [value](auto answer) {
        std::memcpy(value, &answer, sizeof answer);
        return CUDA_SUCCESS;
    };
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return give(contextOf(allocation.device));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return give(allocation.kind == MemoryKind::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return give(address);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            return allocation.kind == MemoryKind::device ? CUDA_ERROR_INVALID_VALUE : give(pointerOf(address));
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return give(static_cast<unsigned>(allocation.kind == MemoryKind::managed));
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return give(allocation.device);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return give(0u);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return give(allocation.base);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return give(allocation.bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return give(1u);
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

}  // extern "C"
