// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <optional>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/device/memory_pool.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kUnpinNs = 30000, kHostAllocNs = 100000, kAsyncNs = 1500, kQuickNs = 300;

// What cudaMalloc and cudaFree cost the host beside their wait for the device; a scenario may say so.
int64_t mallocNs() {
    return static_cast<int64_t>(LocalProcess::instance().cluster().mallocUs * 1000);
}
int64_t freeNs() {
    return static_cast<int64_t>(LocalProcess::instance().cluster().freeUs * 1000);
}

uint64_t capacity(LocalProcess& process) {
    return static_cast<uint64_t>(process.cluster().memoryGb * 1e9);
}

void synchronizeDevice(ApiCall& call) {
    std::vector<StreamPoint> points;
    {
        std::lock_guard guard(call.process().mutex());
        points = everythingOn(call.process(), call.clock().device);
    }
    waitForCompletion(call.process(), points);
}

/// `asyncStream`: the stream's number, if the memory comes in its order.
cudaError_t allocate(ApiCall& call, void** pointer, size_t bytes, MemoryKind kind,
                     std::optional<uint32_t> asyncStream = {}) {
    if (!pointer) return call.end(cudaErrorInvalidValue);
    if (bytes == 0) {
        *pointer = nullptr;
        return call.end(cudaSuccess);
    }
    void* memory = allocateMemory(kind, call.clock().device, bytes, capacity(call.process()));
    if (!memory) return call.end(cudaErrorMemoryAllocation);
    *pointer = memory;
    recordMemory({false, kind, memory, bytes, call.correlation(), static_cast<uint32_t>(call.clock().device),
                  asyncStream.value_or(CUPTI_SYNCHRONIZATION_INVALID_VALUE), asyncStream.has_value()},
                 call.process().stamp(call.clock().ns));
    return call.end(cudaSuccess);
}

void recordRelease(ApiCall& call, const Allocation& gone, std::optional<uint32_t> asyncStream = {}) {
    recordMemory({true, gone.kind, gone.base, gone.bytes, call.correlation(), static_cast<uint32_t>(gone.device),
                  asyncStream.value_or(CUPTI_SYNCHRONIZATION_INVALID_VALUE), asyncStream.has_value()},
                 call.process().stamp(call.clock().ns));
}

cudaError_t releaseAndWait(ApiCall& call, void* pointer) {
    if (!pointer) return call.end(cudaSuccess);
    synchronizeDevice(call);
    Allocation gone{};
    if (!freeMemory(pointer, &gone)) return call.end(cudaErrorInvalidValue);
    giveBackToPool(pointer);
    recordRelease(call, gone);
    return call.end(cudaSuccess);
}

/// The number of a stream; that of the default stream if the handle is unknown.
uint32_t streamNumber(ApiCall& call, cudaStream_t handle, bool perThread) {
    std::lock_guard guard(call.process().mutex());
    const LocalStream* stream = resolveStream(call.process(), call.clock().device, handle, perThread);
    return stream ? stream->id : 7;
}

/// Mapping device memory synchronises implicitly (CUDA programming guide, "Implicit Synchronization").
cudaError_t allocateAndWait(ApiCall& call, void** pointer, size_t bytes, MemoryKind kind) {
    cudaError_t result = allocate(call, pointer, bytes, kind);
    if (result == cudaSuccess && bytes > 0) synchronizeDevice(call);
    return result;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMalloc(void** pointer, size_t bytes) {
    RANKSCOPE_RUNTIME_CALL("cudaMalloc", cudaMalloc_v3020, mallocNs());
    return allocateAndWait(call, pointer, bytes, MemoryKind::device);
}
cudaError_t CUDARTAPI cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaMallocManaged", cudaMallocManaged_v6000, mallocNs());
    return allocateAndWait(call, pointer, bytes, MemoryKind::managed);
}
cudaError_t CUDARTAPI cudaMallocHost(void** pointer, size_t bytes) {
    RANKSCOPE_RUNTIME_CALL("cudaMallocHost", cudaMallocHost_v3020, kHostAllocNs);
    return allocate(call, pointer, bytes, MemoryKind::pinned);
}
cudaError_t CUDARTAPI cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaHostAlloc", cudaHostAlloc_v3020, kHostAllocNs);
    return allocate(call, pointer, bytes, MemoryKind::pinned);
}
cudaError_t CUDARTAPI cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    RANKSCOPE_RUNTIME_CALL("cudaMallocPitch", cudaMallocPitch_v3020, mallocNs());
    if (!pitch) return call.end(cudaErrorInvalidValue);
    *pitch = (width + 511) / 512 * 512;
    return allocateAndWait(call, pointer, *pitch * height, MemoryKind::device);
}
static cudaError_t allocateFrom(ApiCall& call, MemoryPool* pool, void** pointer, size_t bytes, cudaStream_t stream,
                                bool perThread) {
    if (!pool) return call.end(cudaErrorInvalidValue);
    const cudaError_t result =
        allocate(call, pointer, bytes, MemoryKind::device, streamNumber(call, stream, perThread));
    if (result == cudaSuccess && *pointer) takeFromPool(pool, *pointer, bytes);
    return result;
}
cudaError_t CUDARTAPI cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMallocAsync", cudaMallocAsync_v11020, kAsyncNs);
    return allocateFrom(call, currentPool(call.clock().device), pointer, bytes, stream, false);
}
cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMallocFromPoolAsync", cudaMallocFromPoolAsync_v11020, kAsyncNs);
    return allocateFrom(call, findPool(pool), pointer, bytes, stream, false);
}
cudaError_t CUDARTAPI cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMallocAsync_ptsz", cudaMallocAsync_ptsz_v11020, kAsyncNs);
    return allocateFrom(call, currentPool(call.clock().device), pointer, bytes, stream, true);
}

cudaError_t CUDARTAPI cudaFree(void* pointer) {
    RANKSCOPE_RUNTIME_CALL("cudaFree", cudaFree_v3020, freeNs());
    return releaseAndWait(call, pointer);
}
cudaError_t CUDARTAPI cudaFreeHost(void* pointer) {
    RANKSCOPE_RUNTIME_CALL("cudaFreeHost", cudaFreeHost_v3020, kUnpinNs);
    return releaseAndWait(call, pointer);
}

static cudaError_t freeAsync(ApiCall& call, void* pointer, cudaStream_t handle, bool perThread) {
    // Other streams' pending work may still name the memory, so its pages go back only once this stream has come here.
    LocalProcess& process = call.process();
    std::lock_guard guard(process.mutex());
    LocalStream* stream = resolveStream(process, call.clock().device, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    const Allocation gone = findAllocation(pointer);
    if (gone.base != pointer) return call.end(cudaErrorInvalidValue);
    if (stream->capture) return call.end(cudaErrorStreamCaptureUnsupported);
    OpSpec spec;
    spec.kind = OpKind::host;
    StreamPoint point = process.submit(*stream, std::move(spec), OpReport{});
    enqueueEffect(point, [pointer] { freeMemory(pointer); });
    giveBackToPool(pointer);
    recordRelease(call, gone, stream->id);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaFreeAsync(void* pointer, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaFreeAsync", cudaFreeAsync_v11020, kAsyncNs);
    return freeAsync(call, pointer, stream, false);
}
cudaError_t CUDARTAPI cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaFreeAsync_ptsz", cudaFreeAsync_ptsz_v11020, kAsyncNs);
    return freeAsync(call, pointer, stream, true);
}

cudaError_t CUDARTAPI cudaHostRegister(void* pointer, size_t bytes, unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaHostRegister", cudaHostRegister_v4000, kHostAllocNs);
    return call.end(registerHostMemory(pointer, bytes) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}
cudaError_t CUDARTAPI cudaHostUnregister(void* pointer) {
    RANKSCOPE_RUNTIME_CALL("cudaHostUnregister", cudaHostUnregister_v4000, kUnpinNs);
    return call.end(unregisterHostMemory(pointer) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}
cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** devicePointer, void* hostPointer, unsigned) {
    RANKSCOPE_RUNTIME_QUESTION("cudaHostGetDevicePointer", cudaHostGetDevicePointer_v3020, kQuickNs);
    *devicePointer = hostPointer;
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t* freeBytes, size_t* totalBytes) {
    RANKSCOPE_RUNTIME_QUESTION("cudaMemGetInfo", cudaMemGetInfo_v3020, kQuickNs);
    uint64_t total = capacity(call.process());
    if (totalBytes) *totalBytes = total;
    if (freeBytes) *freeBytes = total - deviceMemoryUsed(call.clock().device);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    RANKSCOPE_RUNTIME_QUESTION("cudaPointerGetAttributes", cudaPointerGetAttributes_v4000, kQuickNs);
    if (!attributes) return call.end(cudaErrorInvalidValue);
    Allocation allocation = findAllocation(pointer);
    std::memset(attributes, 0, sizeof *attributes);
    attributes->device = allocation.device;
    attributes->type = cudaMemoryTypeUnregistered;
    if (allocation.kind == MemoryKind::device) attributes->type = cudaMemoryTypeDevice;
    if (allocation.kind == MemoryKind::pinned) attributes->type = cudaMemoryTypeHost;
    if (allocation.kind == MemoryKind::managed) attributes->type = cudaMemoryTypeManaged;
    if (allocation.kind != MemoryKind::pageable) attributes->devicePointer = const_cast<void*>(pointer);
    if (allocation.kind != MemoryKind::device) attributes->hostPointer = const_cast<void*>(pointer);
    return call.end(cudaSuccess);
}

}  // extern "C"
