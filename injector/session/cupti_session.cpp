// SPDX-License-Identifier: Apache-2.0
#include "injector/session/cupti_session.h"

#include <cupti.h>

#include <iterator>
#include <utility>

#include "injector/cupti/activity_decoder.h"
#include "injector/cupti/buffer_pool.h"
#include "injector/cupti/recorded_calls.h"
#include "injector/session/cupti_waits.h"
#include "injector/session/light_session.h"
#include "injector/session/session.h"
#include "injector/text.h"

namespace rankscope::injector::cupti {

static_assert(kExternalCorrelationCustom0 == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
static_assert(kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(sizeof(SubscriberParams) == sizeof(CUpti_SubscriberParams));

std::atomic<bool> g_live{false};
Api g_api;

namespace {

using capture::Source;

constinit ActivityDecoder g_decoder;
constinit BufferPool g_buffers;
constinit WaitCallbacks g_waits{g_decoder};
/// Buffers whose kernels are summed up come one after the other: threads that hand over two of them at once must not
/// tell a step while the older one is on its way.
constinit Mutex g_summaryMutex;
std::atomic<bool> g_registered{false};
std::atomic<bool> g_enabled{false};
std::atomic<bool> g_yielded{false};
constinit FixedText<300> g_holder;  ///< the client we yielded to
std::atomic<bool> g_dead{false};    ///< forked from a process that used CUPTI
std::atomic<bool> g_flushing{false};
/// Around what turns CUPTI on and off for us: ranges begin and end, and other clients come, on any thread, and CUPTI
/// asks its subscriber to take turns.
constinit Mutex g_switchMutex;
bool g_callsAreChosen = false;
bool g_waitsAreRecords = false;  ///< waits and events come as records
/// More callback ids than the runtime and the driver have (CUDA 13.0: 509 and 809).
constexpr uint32_t kMostCalls = 4096;

constexpr int kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_DEVICE,
};

/// For a CUPTI that cannot tell the same for less: calls chosen one by one, waits and events by callbacks.
constexpr int kCallKinds[] = {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};
constexpr int kWaitKinds[] = {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT};

// Of kernels that are told as summaries nothing else is needed, and every other kind costs the job time.
constexpr int kSummaryKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DEVICE};
/// A buffer comes when it is full, or all in it has ended: of a busy device that is about each thousand kernels.
constexpr size_t kSummaryBufferBytes = 256u << 10;

/// The kinds that this process asks CUPTI for.
struct Kinds {
    const int* first;
    size_t count;
    const int* begin() const noexcept { return first; }
    const int* end() const noexcept { return first + count; }
};

Kinds wantedKinds() noexcept {
    if (light::kernelSummaries().isOn()) return {kSummaryKinds, std::size(kSummaryKinds)};
    return {kKinds, std::size(kKinds)};
}

void onBufferRequested(uint8_t** buffer, size_t* size, size_t* maxRecords) noexcept {
    ErrnoKeeper errnoKeeper;
    *buffer = g_buffers.take();
    *size = *buffer == nullptr ? 0 : light::kernelSummaries().isOn() ? kSummaryBufferBytes : BufferPool::kBufferBytes;
    *maxRecords = 0;
}

/// Of `--light=kernels`: kernels become sums, and only what these need is written as it is.
void sumUp(uint8_t* buffer, size_t validSize) noexcept {
    ActivityBlock block(g_session.sink(), Source::cupti);
    KernelSummaries& summaries = light::kernelSummaries();
    void* activity = nullptr;
    EndedKernel kernels[64];
    size_t count = 0, untimed = 0;
    while (validSize > 0 && g_api.activityGetNextRecord(buffer, validSize, &activity) == kSuccess) {
        if (count == std::size(kernels)) summaries.take(kernels, std::exchange(count, 0));
        const ActivityDecoder::Ended ended = g_decoder.decodeEnded(activity, block, kernels[count]);
        count += ended == ActivityDecoder::Ended::kernel ? 1 : 0;
        untimed += ended == ActivityDecoder::Ended::untimed ? 1 : 0;
        if (g_decoder.isOfDevice(activity)) g_decoder.decode(activity, block, g_session.strings());
    }
    if (untimed != 0) g_session.sink().countLoss(Source::cupti, capture::LossKind::untimedKernels, untimed, 0);
    block.flush();  // streams and devices in front of what speaks of them
    summaries.take(kernels, count);
    summaries.settle();
}

void onBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t validSize) noexcept {
    ErrnoKeeper errnoKeeper;
    if (light::kernelSummaries().isOn()) {
        Lock lock(g_summaryMutex);
        sumUp(buffer, validSize);
    } else {
        ActivityBlock block(g_session.sink(), Source::cupti);
        void* activity = nullptr;
        while (validSize > 0 && g_api.activityGetNextRecord(buffer, validSize, &activity) == kSuccess)
            g_decoder.decode(activity, block, g_session.strings());
    }
    size_t dropped = 0;
    if (g_api.activityGetNumDroppedRecords(context, stream, &dropped) == kSuccess && dropped > 0)
        g_session.sink().countLoss(Source::cupti, capture::LossKind::cuptiDropped, dropped, 0);
    if (buffer != nullptr) g_buffers.giveBack(buffer);
}

void refuse(uint16_t status, int code, const char* message) noexcept {
    const char* text = nullptr;
    FixedText<512> all;
    all.append(message);
    if (code != 0 && g_api.getResultString != nullptr && g_api.getResultString(code, &text) == kSuccess &&
        text != nullptr)
        all.append(": ").append(text);
    g_session.tellStatus(Source::cupti, status, code, all.c_str());
    g_session.sink().countLoss(Source::cupti, capture::LossKind::sourceRefused, 1, 0);
}

void tellHolder(const char* words) noexcept {
    FixedText<400> message;
    message.append(words).append(g_holder.c_str());
    refuse(3, 0, message.c_str());
}

bool canSubscribe() noexcept {
    return g_api.unsubscribe != nullptr && (g_api.subscribe != nullptr || g_api.subscribeV2 != nullptr);
}

/// CUPTI serves one client. Taking the place shows whether another has it. It is given back at once, and held only
/// while something is to be called back: a profiler that the job itself may start finds it free.
bool isFree() noexcept {
    if (!canSubscribe()) return true;
    Lock lock(g_switchMutex);
    char holder[256] = {};
    const int result = g_waits.subscribe(g_api, holder, sizeof holder);
    g_waits.unsubscribe();
    if (result == kSuccess) return true;
    if (result == kMultipleSubscribers) {
        FixedText<400> message;
        message.append("CUPTI is in use by ").append(holder[0] != '\0' ? holder : "another tool");
        refuse(3, result, message.c_str());
    } else {
        refuse(2, result, "cuptiSubscribe");
    }
    return false;
}

/// Whether buffers come zeroed, which spares CUPTI doing it on the job's threads. For whoever takes CUPTI over they do
/// not.
void promiseZeroedBuffers(bool promised) noexcept {
    uint8_t value = promised ? 1 : 0;
    size_t bytes = sizeof value;
    if (g_api.activitySetAttribute != nullptr)
        g_api.activitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &value);
}

bool canChooseCalls() noexcept {
    return g_api.activityEnableRuntimeApi != nullptr && g_api.activityEnableDriverApi != nullptr &&
           g_api.getCallbackName != nullptr;
}

/// The calls of one of CUPTI's domains that are recorded, by callback id. Found once: CUPTI knows over a thousand.
struct ChosenCalls {
    const int domain;
    uint64_t ids[kMostCalls / 64] = {};

    void find() noexcept {
        for (uint32_t id = 1; id < kMostCalls; ++id) {
            const char* name = nullptr;
            if (g_api.getCallbackName(domain, id, &name) == kSuccess && name != nullptr && isRecordedCall(name))
                ids[id / 64] |= uint64_t{1} << id % 64;
        }
    }
    int set(int (*choose)(uint32_t, uint8_t), uint8_t recorded) const noexcept {
        int firstError = kSuccess;
        for (uint32_t id = 1; id < kMostCalls; ++id) {
            if ((ids[id / 64] >> id % 64 & 1) == 0) continue;
            if (const int result = choose(id, recorded); result != kSuccess && firstError == kSuccess)
                firstError = result;
        }
        return firstError;
    }
};
constinit ChosenCalls g_runtimeCalls{CUPTI_CB_DOMAIN_RUNTIME_API};
constinit ChosenCalls g_driverCalls{CUPTI_CB_DOMAIN_DRIVER_API};
bool g_callsAreKnown = false;

int chooseCalls(bool recorded) noexcept {
    if (!std::exchange(g_callsAreKnown, true)) {
        g_runtimeCalls.find();
        g_driverCalls.find();
    }
    const int ofRuntime = g_runtimeCalls.set(g_api.activityEnableRuntimeApi, recorded ? 1 : 0);
    const int ofDriver = g_driverCalls.set(g_api.activityEnableDriverApi, recorded ? 1 : 0);
    return ofRuntime != kSuccess ? ofRuntime : ofDriver;
}

template <size_t Count>
int setKinds(const int (&kinds)[Count], int (*set)(int)) noexcept {
    int firstError = kSuccess;
    for (const int kind : kinds)
        if (const int result = set(kind); result != kSuccess && firstError == kSuccess) firstError = result;
    return firstError;
}

/// Calls, waits and events, each by the cheaper way that this CUPTI has, and grants.
int enableCalls() noexcept {
    int firstError = kSuccess;
    g_callsAreChosen = canChooseCalls() && chooseCalls(true) == kSuccess;
    if (!g_callsAreChosen) firstError = setKinds(kCallKinds, g_api.activityEnable);
    char holder[256] = {};
    if (canSubscribe() && g_waits.subscribe(g_api, holder, sizeof holder) == kSuccess && g_waits.enable())
        return firstError;
    g_waits.unsubscribe();
    g_waitsAreRecords = true;
    const int error = setKinds(kWaitKinds, g_api.activityEnable);
    return firstError != kSuccess ? firstError : error;
}

void disableCalls() noexcept {
    if (canChooseCalls()) chooseCalls(false);
    if (!g_callsAreChosen) setKinds(kCallKinds, g_api.activityDisable);
    g_waits.unsubscribe();
    if (std::exchange(g_waitsAreRecords, false)) setKinds(kWaitKinds, g_api.activityDisable);
}

void disableLocked() noexcept {
    g_live.store(false);
    if (!g_enabled.exchange(false)) return;
    for (const int kind : wantedKinds()) g_api.activityDisable(kind);
    if (!light::kernelSummaries().isOn()) disableCalls();
}

}  // namespace

int (*timestampFunction() noexcept)(uint64_t*) {
    loadApi(g_api);
    return g_api.getTimestamp;
}

void start(bool enableNow, bool (*load)(Api&) noexcept) noexcept {
    if (g_dead.load()) return refuse(2, 0, "CUPTI does not survive fork");
    if (g_yielded.load()) return tellHolder("CUPTI is in use by ");
    if (!load(g_api)) return refuse(2, 0, "no usable libcupti found");
    uint32_t version = 0;
    if (g_api.getVersion(&version) != kSuccess || version < kOldestVersion)
        return refuse(2, static_cast<int>(version), "CUPTI is older than 11.8");
    g_decoder.setVersion(version);
    if (!isFree()) return;
    if (g_api.setThreadIdType != nullptr) g_api.setThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    promiseZeroedBuffers(true);
    const int result = g_api.activityRegisterCallbacks(onBufferRequested, onBufferCompleted);
    if (result != kSuccess) return refuse(2, result, "cuptiActivityRegisterCallbacks");
    g_registered.store(true, std::memory_order_release);
    if (enableNow) enable();
}

void enable() noexcept {
    Lock lock(g_switchMutex);
    if (!g_registered.load(std::memory_order_acquire) || g_dead.load() || g_yielded.load() || g_enabled.load()) return;
    int enabled = 0;
    int firstError = kSuccess;
    for (const int kind : wantedKinds()) {
        const int result = g_api.activityEnable(kind);
        if (result == kSuccess)
            ++enabled;
        else if (firstError == kSuccess)
            firstError = result;
        // The kernels are what it is about: without them, or without any device, we do not go on.
        if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && result != kSuccess)
            return refuse(2, result, "cuptiActivityEnable");
    }
    const bool isSummarised = light::kernelSummaries().isOn();
    if (!isSummarised) {
        const int result = enableCalls();
        if (firstError == kSuccess) firstError = result;
    }
    g_enabled.store(true, std::memory_order_release);
    g_live.store(!isSummarised, std::memory_order_release);
    FixedText<64> message;
    message.append("CUPTI: ").append(int64_t{enabled}).append(" activity kinds");
    if (isSummarised) message.append(", kernels as summaries");
    g_session.tellStatus(Source::cupti, 1, firstError, message.c_str());
}

void disable() noexcept {
    Lock lock(g_switchMutex);
    disableLocked();
}

void flush(bool forced) noexcept {
    if (!g_registered.load(std::memory_order_acquire) || g_dead.load() || g_yielded.load()) return;
    // One at a time; a forced flush at the end waits for nobody.
    if (!forced && g_flushing.exchange(true)) return;
    g_api.activityFlushAll(forced ? kFlushForced : 0);
    if (!forced) g_flushing.store(false);
}

void finish() noexcept {
    g_live.store(false);
    g_enabled.store(false);
}

void yieldTo(const char* client) noexcept {
    // Clients call cuptiFinalize from inside CUPTI's callbacks, where nobody may be waited for.
    if (g_yielded.load()) return;
    Lock lock(g_switchMutex);
    if (g_yielded.load()) return;
    g_holder.append(client);
    const bool wasOurs = g_registered.load();
    if (wasOurs) {
        disableLocked();
        flush(true);
        promiseZeroedBuffers(false);
    }
    g_yielded.store(true);
    if (wasOurs) tellHolder("CUPTI was taken over by ");
}

void leavePlace() noexcept {
    Lock lock(g_switchMutex);
    g_waits.unsubscribe();
    if (!g_live.load() || std::exchange(g_waitsAreRecords, true)) return;
    setKinds(kWaitKinds, g_api.activityEnable);
}

void afterForkInChild() noexcept {
    if (g_registered.load()) g_dead.store(true);
    g_live.store(false);
    g_enabled.store(false);
    g_flushing.store(false);
    g_summaryMutex.renew();
    g_switchMutex.renew();
    g_buffers.renewLock();
    g_decoder.clear();
}

}  // namespace rankscope::injector::cupti
