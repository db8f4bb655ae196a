// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/graph_capture.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kCreateNs = 8000, kSyncNs = 900, kQueryNs = 700, kRecordNs = 800;

cudaError_t create(cudaStream_t* handle, unsigned flags, int priority, ApiCall& call) {
    if (!handle) return call.end(cudaErrorInvalidValue);
    if (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) return call.end(cudaErrorInvalidValue);
    LocalProcess& process = call.process();
    std::lock_guard guard(process.mutex());
    LocalStream* stream = process.createStream(call.clock().device, flags, std::clamp(priority, -5, 0));
    *handle = rememberStream(stream);
    return call.end(cudaSuccess);
}

LocalStream* resolve(ApiCall& call, cudaStream_t handle, bool perThread) {
    std::lock_guard guard(call.process().mutex());
    return resolveStream(call.process(), call.clock().device, handle, perThread);
}

StreamPoint newest(ApiCall& call, const LocalStream& stream) {
    std::lock_guard guard(call.process().mutex());
    return {stream.shared, stream.submitted};
}

/// The host cannot wait for what does not run: that ends the capture.
bool refusesCapture(ApiCall& call, LocalStream& stream) {
    std::lock_guard guard(call.process().mutex());
    if (!stream.capture) return false;
    stream.capture->invalidate();
    return true;
}

cudaError_t synchronize(ApiCall& call, cudaStream_t handle, bool perThread) {
    LocalStream* stream = resolve(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    if (refusesCapture(call, *stream)) return call.end(cudaErrorStreamCaptureUnsupported);
    int64_t startNs = call.clock().ns;
    waitForCompletion(call.process(), {newest(call, *stream)});
    call.recordSynchronization(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, stream->id, 0, startNs);
    return call.end(cudaSuccess);
}

cudaError_t query(ApiCall& call, cudaStream_t handle, bool perThread) {
    LocalStream* stream = resolve(call, handle, perThread);
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    if (refusesCapture(call, *stream)) return call.end(cudaErrorStreamCaptureUnsupported);
    StreamPoint point = newest(call, *stream);
    if (!call.process().doneNow(point)) return call.end(cudaErrorNotReady);
    DataPlane::instance().waitFor({&point, 1});
    return call.end(cudaSuccess);
}

/// A wait between streams that capture; a stream outside is drawn in. Mutex held.
cudaError_t waitCaptured(LocalStream& stream, const LocalEvent& event) {
    if (!event.capture || !event.capture->valid()) return cudaErrorStreamCaptureIsolation;
    if (stream.capture && stream.capture != event.capture) return cudaErrorStreamCaptureMerge;
    if (!stream.capture) event.capture->join(stream);
    stream.capture->wait(stream, event.capturedNodes);
    return cudaSuccess;
}

cudaError_t waitEvent(ApiCall& call, cudaStream_t handle, cudaEvent_t eventHandle, bool perThread) {
    auto* event = reinterpret_cast<LocalEvent*>(eventHandle);
    LocalStream* stream = resolve(call, handle, perThread);
    if (!stream || !event) return call.end(cudaErrorInvalidResourceHandle);
    call.process().throttle(*stream);
    std::lock_guard guard(call.process().mutex());
    if (event->capture || stream->capture) return call.end(waitCaptured(*stream, *event));
    orderBehind(call.process(), *stream, event->point);
    call.recordSynchronization(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, stream->id, event->id,
                               call.clock().ns);
    return call.end(cudaSuccess);
}

cudaError_t destroy(ApiCall& call, cudaStream_t handle) {
    std::lock_guard guard(call.process().mutex());
    // Its work goes on; the stream itself stays known to the engine until the process ends.
    return call.end(forgetStream(handle) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

template <typename Get>
cudaError_t describe(cudaStream_t handle, bool perThread, Get get) {
    LocalProcess& process = LocalProcess::instance();
    ThreadClock& thread = process.askingClock();
    std::lock_guard guard(process.mutex());
    LocalStream* stream = resolveStream(process, thread.device, handle, perThread);
    if (!stream) return lastError() = cudaErrorInvalidResourceHandle;
    get(*stream);
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamCreate", cudaStreamCreate_v3020, kCreateNs);
    return create(stream, 0, 0, call);
}
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags_v5000, kCreateNs);
    return create(stream, flags, 0, call);
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamCreateWithPriority", cudaStreamCreateWithPriority_v5050, kCreateNs);
    return create(stream, flags, priority, call);
}
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
    RANKSCOPE_RUNTIME_CALL("cudaStreamDestroy", cudaStreamDestroy_v5050, kCreateNs);
    return destroy(call, stream);
}
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) {
    const cudaStreamSynchronize_v3020_params params{stream};
    RANKSCOPE_RUNTIME_CALL("cudaStreamSynchronize", cudaStreamSynchronize_v3020, kSyncNs, &params);
    return synchronize(call, stream, false);
}
cudaError_t CUDARTAPI cudaStreamSynchronize_ptsz(cudaStream_t stream) {
    const cudaStreamSynchronize_ptsz_v7000_params params{stream};
    RANKSCOPE_RUNTIME_CALL("cudaStreamSynchronize_ptsz", cudaStreamSynchronize_ptsz_v7000, kSyncNs, &params);
    return synchronize(call, stream, true);
}
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream) {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamQuery", cudaStreamQuery_v3020, kQueryNs);
    return query(call, stream, false);
}
cudaError_t CUDARTAPI cudaStreamQuery_ptsz(cudaStream_t stream) {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamQuery_ptsz", cudaStreamQuery_ptsz_v7000, kQueryNs);
    return query(call, stream, true);
}
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    const cudaStreamWaitEvent_v3020_params params{stream, event, flags};
    RANKSCOPE_RUNTIME_CALL("cudaStreamWaitEvent", cudaStreamWaitEvent_v3020, kRecordNs, &params);
    return waitEvent(call, stream, event, false);
}
cudaError_t CUDARTAPI cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    const cudaStreamWaitEvent_ptsz_v7000_params params{stream, event, flags};
    RANKSCOPE_RUNTIME_CALL("cudaStreamWaitEvent_ptsz", cudaStreamWaitEvent_ptsz_v7000, kRecordNs, &params);
    return waitEvent(call, stream, event, true);
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void) {
    RANKSCOPE_RUNTIME_CALL("cudaDeviceSynchronize", cudaDeviceSynchronize_v3020, kSyncNs);
    LocalProcess& process = call.process();
    std::vector<StreamPoint> points;
    {
        std::lock_guard guard(process.mutex());
        points = everythingOn(process, call.clock().device);
    }
    int64_t startNs = call.clock().ns;
    waitForCompletion(process, points);
    call.recordSynchronization(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
                               CUPTI_SYNCHRONIZATION_INVALID_VALUE, 0, startNs);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    return describe(stream, false, [&](const LocalStream& s) { *flags = s.flags; });
}
cudaError_t CUDARTAPI cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
    return describe(stream, true, [&](const LocalStream& s) { *flags = s.flags; });
}
cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    return describe(stream, false, [&](const LocalStream& s) { *priority = s.priority; });
}
cudaError_t CUDARTAPI cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
    return describe(stream, true, [&](const LocalStream& s) { *priority = s.priority; });
}
cudaError_t CUDARTAPI cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
    return describe(stream, false, [&](const LocalStream& s) { *id = s.id; });
}
cudaError_t CUDARTAPI cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
    return describe(stream, true, [&](const LocalStream& s) { *id = s.id; });
}
cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t stream, int* device) {
    return describe(stream, false, [&](const LocalStream& s) { *device = s.device; });
}
cudaError_t CUDARTAPI cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
    return describe(stream, true, [&](const LocalStream& s) { *device = s.device; });
}

}  // extern "C"
