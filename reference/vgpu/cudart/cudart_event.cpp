// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/graph_capture.h"

using namespace rankscope::vgpu;

namespace {

// Events come and go at no cost: frameworks keep them for later use, and whether one has been given back depends on
// threads that only watch, when the system lets them.
constexpr int64_t kCreateNs = 0, kRecordNs = 900, kQueryNs = 600, kSyncNs = 900;

LocalEvent* eventOf(cudaEvent_t handle) {
    return reinterpret_cast<LocalEvent*>(handle);
}

bool isCaptured(ApiCall& call, const LocalEvent& event) {
    std::lock_guard guard(call.process().mutex());
    return event.capture != nullptr;
}

cudaError_t create(ApiCall& call, cudaEvent_t* handle, unsigned flags) {
    static std::atomic<uint32_t> nextId{1};
    if (!handle) return call.end(cudaErrorInvalidValue);
    auto* event = new LocalEvent;
    event->flags = flags;
    event->id = nextId++;
    event->device = call.clock().device;
    *handle = reinterpret_cast<cudaEvent_t>(event);
    return call.end(cudaSuccess);
}

cudaError_t record(ApiCall& call, cudaEvent_t handle, cudaStream_t streamHandle, bool perThread) {
    LocalEvent* event = eventOf(handle);
    if (!event) return call.end(cudaErrorInvalidResourceHandle);
    LocalProcess& process = call.process();
    LocalStream* stream;
    {
        std::lock_guard guard(process.mutex());
        stream = resolveStream(process, call.clock().device, streamHandle, perThread);
    }
    if (!stream) return call.end(cudaErrorInvalidResourceHandle);
    process.throttle(*stream);
    std::lock_guard guard(process.mutex());
    event->capture = stream->capture;
    event->capturedNodes.clear();
    if (stream->capture) {
        event->capturedNodes = stream->capture->frontier(*stream);
        event->point = {kNone, 0};
        return call.end(cudaSuccess);
    }
    orderBehindDefaults(process, *stream);
    OpSpec spec;
    spec.kind = OpKind::record;
    event->point = process.submit(*stream, std::move(spec), OpReport{});
    if (activityWanted(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) {
        CUpti_ActivityCudaEvent2 activity{};
        activity.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
        activity.correlationId = call.correlation();
        activity.contextId = static_cast<uint32_t>(stream->device) + 1;
        activity.streamId = stream->id;
        activity.eventId = event->id;
        activity.deviceId = static_cast<uint32_t>(stream->device);
        appendRecord(&activity, sizeof activity);
    }
    return call.end(cudaSuccess);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t* event) {
    RANKSCOPE_RUNTIME_QUESTION("cudaEventCreate", cudaEventCreate_v3020, kCreateNs);
    return create(call, event, 0);
}
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    RANKSCOPE_RUNTIME_QUESTION("cudaEventCreateWithFlags", cudaEventCreateWithFlags_v3020, kCreateNs);
    return create(call, event, flags);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
    RANKSCOPE_RUNTIME_QUESTION("cudaEventDestroy", cudaEventDestroy_v3020, kCreateNs);
    if (!event) return call.end(cudaErrorInvalidResourceHandle);
    delete eventOf(event);
    return call.end(cudaSuccess);
}
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const cudaEventRecord_v3020_params params{event, stream};
    RANKSCOPE_RUNTIME_CALL("cudaEventRecord", cudaEventRecord_v3020, kRecordNs, &params);
    return record(call, event, stream, false);
}
cudaError_t CUDARTAPI cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    const cudaEventRecord_ptsz_v7000_params params{event, stream};
    RANKSCOPE_RUNTIME_CALL("cudaEventRecord_ptsz", cudaEventRecord_ptsz_v7000, kRecordNs, &params);
    return record(call, event, stream, true);
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    const cudaEventRecordWithFlags_v11010_params params{event, stream, flags};
    RANKSCOPE_RUNTIME_CALL("cudaEventRecordWithFlags", cudaEventRecordWithFlags_v11010, kRecordNs, &params);
    return record(call, event, stream, false);
}
cudaError_t CUDARTAPI cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    const cudaEventRecordWithFlags_ptsz_v11010_params params{event, stream, flags};
    RANKSCOPE_RUNTIME_CALL("cudaEventRecordWithFlags_ptsz", cudaEventRecordWithFlags_ptsz_v11010, kRecordNs, &params);
    return record(call, event, stream, true);
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t handle) {
    const cudaEventSynchronize_v3020_params params{handle};
    RANKSCOPE_RUNTIME_CALL("cudaEventSynchronize", cudaEventSynchronize_v3020, kSyncNs, &params);
    LocalEvent* event = eventOf(handle);
    if (!event) return call.end(cudaErrorInvalidResourceHandle);
    if (isCaptured(call, *event)) return call.end(cudaErrorCapturedEvent);
    int64_t startNs = call.clock().ns;
    if (event->point.stream != kNone) waitForCompletion(call.process(), {event->point});
    call.recordSynchronization(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
                               CUPTI_SYNCHRONIZATION_INVALID_VALUE, event->id, startNs);
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t handle) {
    RANKSCOPE_RUNTIME_QUESTION("cudaEventQuery", cudaEventQuery_v3020, kQueryNs);
    LocalEvent* event = eventOf(handle);
    if (!event) return call.end(cudaErrorInvalidResourceHandle);
    if (isCaptured(call, *event)) return call.end(cudaErrorCapturedEvent);
    if (event->point.stream == kNone) return call.end(cudaSuccess);
    if (!call.process().doneNow(event->point)) return call.end(cudaErrorNotReady);
    DataPlane::instance().waitFor({&event->point, 1});
    return call.end(cudaSuccess);
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t startHandle, cudaEvent_t endHandle) {
    RANKSCOPE_RUNTIME_QUESTION("cudaEventElapsedTime", cudaEventElapsedTime_v3020, kQueryNs);
    LocalEvent *start = eventOf(startHandle), *end = eventOf(endHandle);
    if (!milliseconds || !start || !end) return call.end(cudaErrorInvalidResourceHandle);
    if (start->point.stream == kNone || end->point.stream == kNone) return call.end(cudaErrorInvalidResourceHandle);
    if ((start->flags | end->flags) & cudaEventDisableTiming) return call.end(cudaErrorInvalidResourceHandle);
    if (!call.process().doneNow(start->point) || !call.process().doneNow(end->point))
        return call.end(cudaErrorNotReady);
    *milliseconds = static_cast<float>(
        static_cast<double>(call.process().endOf(end->point) - call.process().endOf(start->point)) / 1e6);
    return call.end(cudaSuccess);
}

}  // extern "C"
