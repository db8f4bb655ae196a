// SPDX-License-Identifier: Apache-2.0
#include "injector/session/cupti_waits.h"

#include <cupti.h>

#include <atomic>
#include <iterator>
#include <utility>

#include "injector/session/cupti_session.h"
#include "injector/session/session.h"

namespace rankscope::injector::cupti {
namespace {

/// What a call does, and so which handles its parameters begin with.
enum class Does : uint8_t { recordsEvent, letsStreamWait, waitsForStream, waitsForEvent, waitsForDevice };

struct WaitingCall {
    int domain;
    uint32_t id;
    Does does;
    bool perThread;  ///< its default stream is the calling thread's own
};

#define RANKSCOPE_RUNTIME(name, does, perThread) \
    { CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##name, Does::does, perThread }
#define RANKSCOPE_DRIVER(name, does, perThread) \
    { CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name, Does::does, perThread }
constexpr WaitingCall kCalls[] = {
    RANKSCOPE_RUNTIME(cudaEventRecord_v3020, recordsEvent, false),
    RANKSCOPE_RUNTIME(cudaEventRecord_ptsz_v7000, recordsEvent, true),
    RANKSCOPE_RUNTIME(cudaEventRecordWithFlags_v11010, recordsEvent, false),
    RANKSCOPE_RUNTIME(cudaEventRecordWithFlags_ptsz_v11010, recordsEvent, true),
    RANKSCOPE_RUNTIME(cudaStreamWaitEvent_v3020, letsStreamWait, false),
    RANKSCOPE_RUNTIME(cudaStreamWaitEvent_ptsz_v7000, letsStreamWait, true),
    RANKSCOPE_RUNTIME(cudaStreamSynchronize_v3020, waitsForStream, false),
    RANKSCOPE_RUNTIME(cudaStreamSynchronize_ptsz_v7000, waitsForStream, true),
    RANKSCOPE_RUNTIME(cudaEventSynchronize_v3020, waitsForEvent, false),
    RANKSCOPE_RUNTIME(cudaDeviceSynchronize_v3020, waitsForDevice, false),
    RANKSCOPE_DRIVER(cuEventRecord, recordsEvent, false),
    RANKSCOPE_DRIVER(cuEventRecord_ptsz, recordsEvent, true),
    RANKSCOPE_DRIVER(cuEventRecordWithFlags, recordsEvent, false),
    RANKSCOPE_DRIVER(cuEventRecordWithFlags_ptsz, recordsEvent, true),
    RANKSCOPE_DRIVER(cuStreamWaitEvent, letsStreamWait, false),
    RANKSCOPE_DRIVER(cuStreamWaitEvent_ptsz, letsStreamWait, true),
    RANKSCOPE_DRIVER(cuStreamSynchronize, waitsForStream, false),
    RANKSCOPE_DRIVER(cuStreamSynchronize_ptsz, waitsForStream, true),
    RANKSCOPE_DRIVER(cuEventSynchronize, waitsForEvent, false),
    RANKSCOPE_DRIVER(cuCtxSynchronize, waitsForDevice, false),
    RANKSCOPE_DRIVER(cuCtxSynchronize_v2, waitsForDevice, false),
};
#undef RANKSCOPE_RUNTIME
#undef RANKSCOPE_DRIVER

const WaitingCall* callOf(int domain, uint32_t id) noexcept {
    for (const WaitingCall& call : kCalls)
        if (call.id == id && call.domain == domain) return &call;
    return nullptr;
}

/// The handles that a call was given. The runtime's and the driver's parameters have them at the same places.
struct Handles {
    void* stream = nullptr;
    void* event = nullptr;
};
static_assert(sizeof(cudaEventRecord_v3020_params) == 2 * sizeof(void*) &&
              sizeof(cuEventRecord_params) == 2 * sizeof(void*) &&
              offsetof(cudaEventRecordWithFlags_v11010_params, stream) == offsetof(cuEventRecord_params, hStream) &&
              offsetof(cudaStreamWaitEvent_v3020_params, event) == offsetof(cuStreamWaitEvent_params, hEvent) &&
              sizeof(cudaStreamSynchronize_v3020_params) == sizeof(cuEventSynchronize_params));

Handles handlesOf(Does does, const void* parameters) noexcept {
    if (parameters == nullptr || does == Does::waitsForDevice) return {};
    const auto* words = static_cast<void* const*>(parameters);
    switch (does) {
        case Does::recordsEvent:
            return {words[1], words[0]};
        case Does::letsStreamWait:
            return {words[0], words[1]};
        case Does::waitsForStream:
            return {words[0], nullptr};
        default:
            return {nullptr, words[0]};
    }
}

uint32_t syncKind(Does does) noexcept {
    switch (does) {
        case Does::letsStreamWait:
            return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
        case Does::waitsForStream:
            return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        case Does::waitsForEvent:
            return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
        default:
            return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
    }
}

/// CUPTI's number of an event where it tells (13.4 on); else one from its handle, the address of something of 16 bytes
/// at least: two events have the same if they are a multiple of 64 GiB apart.
uint32_t numberOf(const Api& api, void* event) noexcept {
    uint32_t number = 0;
    if (api.getCudaEventId != nullptr && api.getCudaEventId(event, &number) == kSuccess) return number;
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(event) >> 4);
}

/// Where a thread is among the calls that call back. CUPTI also tells those that the runtime makes of the driver: only
/// the outer one counts. What was entered before the last subscription says nothing.
struct Place {
    uint32_t subscription = 0;
    uint32_t depth = 0;
    /// Streams that it named, which spares it the table's lock: a framework's thread goes between two or three.
    struct Named {
        uint32_t context = 0, stream = 0;
        uint16_t index = StreamTable::kNone;
    } streams[4];
};
constinit thread_local Place t_place __attribute__((tls_model("initial-exec")));
std::atomic<uint32_t> g_subscription{0};

/// The index of a stream in the file; StreamTable::kNone if it is not known. The context that CUPTI tells is the
/// calling thread's, which of several devices another may be the stream's: that is known once a kernel or copy of it
/// was told.
uint16_t streamOf(const Api& api, ActivityDecoder& decoder, const CUpti_CallbackData& call, void* handle,
                  bool perThread) noexcept {
    // The default streams have handles of their own: 1 that of the device, 2 that of the thread.
    const auto number = reinterpret_cast<uintptr_t>(handle);
    if (number == 1 || number == 2) {
        perThread = number == 2;
        handle = nullptr;
    }
    uint32_t device = 0, stream = 0;
    if (api.getStreamIdEx(call.context, handle, perThread ? 1 : 0, &stream) != kSuccess)
        return api.getStreamIdEx(nullptr, handle, perThread ? 1 : 0, &stream) == kSuccess
                   ? decoder.streamOutside(call.contextUid, stream)
                   : StreamTable::kNone;
    Place::Named& known = t_place.streams[stream % std::size(t_place.streams)];
    if (known.index != StreamTable::kNone && known.stream == stream && known.context == call.contextUid)
        return known.index;
    if (api.getDeviceId(call.context, &device) != kSuccess) return StreamTable::kNone;
    known = {call.contextUid, stream, decoder.streamOf(g_session.sink(), device, call.contextUid, stream)};
    return known.index;
}

void record(const Api& api, ActivityDecoder& decoder, const WaitingCall& waiting,
            const CUpti_CallbackData& call) noexcept {
    // What CUDA refused was no wait, and nobody may touch its handles.
    if (call.functionReturnValue != nullptr && *static_cast<const int*>(call.functionReturnValue) != 0) return;
    const bool onDevice = waiting.does == Does::recordsEvent || waiting.does == Does::letsStreamWait;
    const Handles handles = handlesOf(waiting.does, call.functionParams);
    const auto startNs = static_cast<int64_t>(*call.correlationData);
    const int64_t endNs = g_session.now();
    const bool hasStream = onDevice || waiting.does == Does::waitsForStream;
    const uint16_t stream =
        hasStream ? streamOf(api, decoder, call, handles.stream, waiting.perThread) : StreamTable::kNone;
    if (hasStream && stream == StreamTable::kNone)
        g_session.sink().countLoss(capture::Source::cupti, capture::LossKind::unknownStreams, 1, endNs);
    if (onDevice && stream == StreamTable::kNone) return;
    if (waiting.does == Does::recordsEvent) {
        capture::CudaEventRecord record{};
        record.head = {capture::RecordType::cudaEvent, 1, stream};
        record.correlationId = call.correlationId;
        record.timeNs = startNs;
        record.eventId = numberOf(api, handles.event);
        g_session.pushOnly(record, endNs);
        return;
    }
    capture::SynchronizationRecord record{};
    record.head = {capture::RecordType::synchronization, 1, stream};
    record.correlationId = call.correlationId;
    record.startNs = startNs;
    capture::setDurationNs(record, endNs > startNs ? static_cast<uint64_t>(endNs - startNs) : 0);
    record.kind = syncKind(waiting.does);
    if (handles.event != nullptr) record.eventId = numberOf(api, handles.event);
    g_session.pushOnly(record, endNs);
}

}  // namespace

int WaitCallbacks::subscribe(const Api& api, char* holder, size_t holderBytes) noexcept {
    m_api = &api;
    void* subscriber = nullptr;
    int result = kSuccess;
    if (api.subscribeV2 != nullptr) {
        SubscriberParams params{sizeof(SubscriberParams), "rankscope", holder, holderBytes};
        result = api.subscribeV2(&subscriber, &WaitCallbacks::onCall, this, &params);
    } else {
        result = api.subscribe(&subscriber, &WaitCallbacks::onCall, this);
    }
    if (result != kSuccess) return result;
    g_subscription.fetch_add(1);
    m_subscriber = subscriber;
    return result;
}

bool WaitCallbacks::canCallBack() const noexcept {
    return m_subscriber != nullptr && m_api->enableCallback != nullptr && m_api->getStreamIdEx != nullptr &&
           m_api->getDeviceId != nullptr;
}

bool WaitCallbacks::enable() noexcept {
    if (!canCallBack()) return false;
    bool isTold = true;
    for (const WaitingCall& call : kCalls)
        isTold = m_api->enableCallback(1, m_subscriber, call.domain, call.id) == kSuccess && isTold;
    return isTold;
}

void WaitCallbacks::unsubscribe() noexcept {
    if (void* subscriber = std::exchange(m_subscriber, nullptr)) m_api->unsubscribe(subscriber);
}

void WaitCallbacks::onCall(void* self, int domain, uint32_t callbackId, const void* data) noexcept {
    const WaitingCall* waiting = callOf(domain, callbackId);
    if (waiting == nullptr) return;
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    Place& place = t_place;
    if (const uint32_t subscription = g_subscription.load(std::memory_order_relaxed);
        place.subscription != subscription)
        place = {subscription, 0, {}};
    if (call.callbackSite == CUPTI_API_ENTER) {
        // The runtime's calls make none of each other: one that was left by longjmp ends with the next.
        if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) place.depth = 0;
        if (place.depth++ == 0) *call.correlationData = static_cast<uint64_t>(g_session.now());
        return;
    }
    if (place.depth == 0 || --place.depth > 0 || !g_live.load(std::memory_order_relaxed)) return;
    ErrnoKeeper errnoKeeper;
    const auto& callbacks = *static_cast<WaitCallbacks*>(self);
    record(*callbacks.m_api, callbacks.m_decoder, *waiting, call);
}

}  // namespace rankscope::injector::cupti
