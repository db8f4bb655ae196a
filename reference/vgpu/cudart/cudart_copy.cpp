// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/device/operator_scope.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kIssueNs = 2500, kSetNs = 2000;
constexpr double kCopyLatencyNs = 1500;

/// `rows` rows of `rowBytes`; a plain copy is one row.
struct CopyShape {
    void* to;
    size_t toPitch;
    const void* from;
    size_t fromPitch;
    size_t rowBytes, rows;
    size_t bytes() const { return rowBytes * rows; }
};

bool onDevice(MemoryKind kind) {
    return kind == MemoryKind::device || kind == MemoryKind::managed;
}

uint8_t directionOf(const Allocation& from, const Allocation& to) {
    if (onDevice(from.kind) && onDevice(to.kind))
        return from.device == to.device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    if (onDevice(to.kind)) return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    if (onDevice(from.kind)) return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    return CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

double copyNs(const Cluster& cluster, uint8_t direction, bool pageable, double bytes) {
    if (direction == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD)
        return kCopyLatencyNs + 2 * bytes / cluster.hbmGbps;  // read and write
    if (direction == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP) return kCopyLatencyNs + bytes / cluster.intra.gbps;
    return kCopyLatencyNs + bytes / (pageable ? cluster.pageableGbps : cluster.pcieGbps);
}

void moveRows(const CopyShape& shape) {
    if (shape.rows == 1) return moveBytes(shape.to, shape.from, shape.rowBytes);
    for (size_t row = 0; row < shape.rows; row++)
        std::memmove(static_cast<char*>(shape.to) + row * shape.toPitch,
                     static_cast<const char*>(shape.from) + row * shape.fromPitch, shape.rowBytes);
}

LocalStream* prepare(ApiCall& call, cudaStream_t handle, bool perThread) {
    LocalStream* stream;
    {
        std::lock_guard guard(call.process().mutex());
        stream = resolveStream(call.process(), call.clock().device, handle, perThread);
    }
    if (stream) call.process().throttle(*stream);
    return stream;
}

/// Issues an operation whose cost is known beforehand.
auto submitting(LocalProcess& process, OpSpec spec, std::function<void()> effect) {
    return [&process, spec = std::move(spec), effect = std::move(effect)](LocalStream& stream, const OpReport& report) {
        StreamPoint point = process.submit(stream, spec, report);
        enqueueEffect(point, effect);
        return point;
    };
}

cudaError_t copy(ApiCall& call, const CopyShape& shape, cudaStream_t handle, bool perThread, bool async) {
    if (shape.bytes() == 0) return call.end(cudaSuccess);
    if (!shape.to || !shape.from) return call.end(cudaErrorInvalidValue);
    LocalProcess& process = call.process();
    LocalStream* stream = prepare(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    Allocation from = findAllocation(shape.from), to = findAllocation(shape.to);
    uint8_t direction = directionOf(from, to);
    bool pageable = from.kind == MemoryKind::pageable || to.kind == MemoryKind::pageable;
    // Pageable copies are staged: the call returns when the source has been read, here when the copy is done.
    bool blocking = !async ? direction != CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : pageable;
    DeviceWork work;
    work.recordKind = CUPTI_ACTIVITY_KIND_MEMCPY;
    work.report.kind = OpReport::Kind::copy;
    work.report.bytes = shape.bytes();
    work.report.copyKind = direction;
    work.report.srcKind = activityMemoryKind(from.kind);
    work.report.dstKind = activityMemoryKind(to.kind);
    work.report.isAsync = async;
    OpSpec spec;
    spec.kind = OpKind::copy;
    spec.workNs =
        static_cast<int64_t>(copyNs(process.cluster(), direction, pageable, static_cast<double>(shape.bytes())));
    CopyShape moved = shape;
    if (direction == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH) moved.from = sourceOfRead(shape.from, shape.bytes());
    work.issue = submitting(process, std::move(spec), [moved] { moveRows(moved); });
    StreamPoint point;
    {
        std::lock_guard guard(process.mutex());
        point = perform(call, *stream, std::move(work));
    }
    if (blocking && point.stream != kNone) waitForCompletion(process, {point});
    return call.end(cudaSuccess);
}

cudaError_t set(ApiCall& call, void* to, size_t pitch, int value, size_t rowBytes, size_t rows, cudaStream_t handle,
                bool perThread, bool async) {
    if (rowBytes * rows == 0) return call.end(cudaSuccess);
    if (!to) return call.end(cudaErrorInvalidValue);
    LocalProcess& process = call.process();
    LocalStream* stream = prepare(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    DeviceWork work;
    work.recordKind = CUPTI_ACTIVITY_KIND_MEMSET;
    work.report.kind = OpReport::Kind::memset;
    work.report.bytes = rowBytes * rows;
    work.report.value = static_cast<uint32_t>(value) & 0xffu;
    work.report.isAsync = async;
    work.report.dstKind = activityMemoryKind(findAllocation(to).kind);
    OpSpec spec;
    spec.kind = OpKind::memset;
    spec.workNs =
        static_cast<int64_t>(kCopyLatencyNs + static_cast<double>(rowBytes * rows) / process.cluster().hbmGbps);
    work.issue = submitting(process, std::move(spec), [=] {
        if (rows == 1) return setBytes(to, value, rowBytes);
        for (size_t row = 0; row < rows; row++) std::memset(static_cast<char*>(to) + row * pitch, value, rowBytes);
    });
    std::lock_guard guard(process.mutex());
    perform(call, *stream, std::move(work));
    return call.end(cudaSuccess);
}

CopyShape line(void* to, const void* from, size_t bytes) {
    return {to, bytes, from, bytes, bytes, 1};
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpy", cudaMemcpy_v3020, kIssueNs);
    return copy(call, line(to, from, bytes), nullptr, false, false);
}
cudaError_t CUDARTAPI cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpy_ptds", cudaMemcpy_ptds_v7000, kIssueNs);
    return copy(call, line(to, from, bytes), nullptr, true, false);
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpyAsync", cudaMemcpyAsync_v3020, kIssueNs);
    return copy(call, line(to, from, bytes), stream, false, true);
}
cudaError_t CUDARTAPI cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                           cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpyAsync_ptsz", cudaMemcpyAsync_ptsz_v7000, kIssueNs);
    return copy(call, line(to, from, bytes), stream, true, true);
}
cudaError_t CUDARTAPI cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpyPeer", cudaMemcpyPeer_v4000, kIssueNs);
    return copy(call, line(to, from, bytes), nullptr, false, false);
}
cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpyPeerAsync", cudaMemcpyPeerAsync_v4000, kIssueNs);
    return copy(call, line(to, from, bytes), stream, false, true);
}
cudaError_t CUDARTAPI cudaMemcpy2D(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                                   size_t height, cudaMemcpyKind) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpy2D", cudaMemcpy2D_v3020, kIssueNs);
    return copy(call, {to, toPitch, from, fromPitch, width, height}, nullptr, false, false);
}
cudaError_t CUDARTAPI cudaMemcpy2D_ptds(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                                        size_t height, cudaMemcpyKind) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpy2D_ptds", cudaMemcpy2D_ptds_v7000, kIssueNs);
    return copy(call, {to, toPitch, from, fromPitch, width, height}, nullptr, true, false);
}
cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                                        size_t height, cudaMemcpyKind, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpy2DAsync", cudaMemcpy2DAsync_v3020, kIssueNs);
    return copy(call, {to, toPitch, from, fromPitch, width, height}, stream, false, true);
}
cudaError_t CUDARTAPI cudaMemcpy2DAsync_ptsz(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                                             size_t height, cudaMemcpyKind, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpy2DAsync_ptsz", cudaMemcpy2DAsync_ptsz_v7000, kIssueNs);
    return copy(call, {to, toPitch, from, fromPitch, width, height}, stream, true, true);
}
cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                         cudaMemcpyKind) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpyToSymbol", cudaMemcpyToSymbol_v3020, kIssueNs);
    if (!symbolBytes(symbol)) return call.end(cudaErrorInvalidSymbol);
    return copy(call, line(static_cast<char*>(const_cast<void*>(symbol)) + offset, from, bytes), nullptr, false, false);
}
cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind) {
    RANKSCOPE_RUNTIME_CALL("cudaMemcpyFromSymbol", cudaMemcpyFromSymbol_v3020, kIssueNs);
    if (!symbolBytes(symbol)) return call.end(cudaErrorInvalidSymbol);
    return copy(call, line(to, static_cast<const char*>(symbol) + offset, bytes), nullptr, false, false);
}

cudaError_t CUDARTAPI cudaMemset(void* to, int value, size_t bytes) {
    RANKSCOPE_RUNTIME_CALL("cudaMemset", cudaMemset_v3020, kSetNs);
    return set(call, to, bytes, value, bytes, 1, nullptr, false, false);
}
cudaError_t CUDARTAPI cudaMemset_ptds(void* to, int value, size_t bytes) {
    RANKSCOPE_RUNTIME_CALL("cudaMemset_ptds", cudaMemset_ptds_v7000, kSetNs);
    return set(call, to, bytes, value, bytes, 1, nullptr, true, false);
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemsetAsync", cudaMemsetAsync_v3020, kSetNs);
    return set(call, to, bytes, value, bytes, 1, stream, false, true);
}
cudaError_t CUDARTAPI cudaMemsetAsync_ptsz(void* to, int value, size_t bytes, cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemsetAsync_ptsz", cudaMemsetAsync_ptsz_v7000, kSetNs);
    return set(call, to, bytes, value, bytes, 1, stream, true, true);
}
cudaError_t CUDARTAPI cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    RANKSCOPE_RUNTIME_CALL("cudaMemset2D", cudaMemset2D_v3020, kSetNs);
    return set(call, to, pitch, value, width, height, nullptr, false, false);
}
cudaError_t CUDARTAPI cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                        cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaMemset2DAsync", cudaMemset2DAsync_v3020, kSetNs);
    return set(call, to, pitch, value, width, height, stream, false, true);
}

static cudaError_t hostFunction(ApiCall& call, cudaStream_t handle, cudaHostFn_t function, void* userData,
                                bool perThread) {
    LocalStream* stream = prepare(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    if (!function) return call.end(cudaErrorInvalidValue);
    OpSpec spec;
    spec.kind = OpKind::host;
    spec.workNs = 5000;  // waking the driver's thread
    DeviceWork work;
    work.issue = submitting(call.process(), std::move(spec), [function, userData] { function(userData); });
    std::lock_guard guard(call.process().mutex());
    perform(call, *stream, std::move(work));
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData) {
    RANKSCOPE_RUNTIME_CALL("cudaLaunchHostFunc", cudaLaunchHostFunc_v10000, kIssueNs);
    return hostFunction(call, stream, function, userData, false);
}
cudaError_t CUDARTAPI cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* userData) {
    RANKSCOPE_RUNTIME_CALL("cudaLaunchHostFunc_ptsz", cudaLaunchHostFunc_ptsz_v10000, kIssueNs);
    return hostFunction(call, stream, function, userData, true);
}

static cudaError_t addCallback(ApiCall& call, cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                               bool perThread) {
    struct Kept {
        cudaStream_t stream;
        cudaStreamCallback_t callback;
        void* userData;
    };
    if (!callback) return call.end(cudaErrorInvalidValue);
    auto* kept = new Kept{stream, callback, userData};
    const auto run = [](void* data) {
        const std::unique_ptr<Kept> once(static_cast<Kept*>(data));
        once->callback(once->stream, cudaSuccess, once->userData);
    };
    const cudaError_t result = hostFunction(call, stream, run, kept, perThread);
    if (result != cudaSuccess) delete kept;
    return result;
}
cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                            unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamAddCallback", cudaStreamAddCallback_v5000, kIssueNs);
    return addCallback(call, stream, callback, userData, false);
}
cudaError_t CUDARTAPI cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                                 unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamAddCallback_ptsz", cudaStreamAddCallback_ptsz_v7000, kIssueNs);
    return addCallback(call, stream, callback, userData, true);
}

}  // extern "C"
