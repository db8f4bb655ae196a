// SPDX-License-Identifier: Apache-2.0
#include "injector/session/cupti_session.h"

#include <cupti.h>

#include <iterator>
#include <utility>

#include "injector/cupti/activity_decoder.h"
#include "injector/cupti/buffer_pool.h"
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
/// Buffers whose kernels are summed up come one after the other: threads that hand over two of them at once must not
/// tell a step while the older one is on its way.
constinit Mutex g_summaryMutex;
std::atomic<bool> g_registered{false};
std::atomic<bool> g_enabled{false};
std::atomic<bool> g_yielded{false};
constinit FixedText<300> g_holder;  ///< the client we yielded to
std::atomic<bool> g_dead{false};    ///< forked from a process that used CUPTI
std::atomic<bool> g_flushing{false};

constexpr int kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_CUDA_EVENT,
    CUPTI_ACTIVITY_KIND_DEVICE,
};

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

// Called thousands of times a second by frameworks, worth nothing in a diagnosis.
constexpr uint32_t kNoisyRuntime[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDeviceCount_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000,
    CUPTI_RUNTIME_TRACE_CBID___cudaGetKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaThreadExchangeStreamCaptureMode_v10010,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_v2_v11030,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_v12030,
};
constexpr uint32_t kNoisyDriver[] = {
    CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent,      CUPTI_DRIVER_TRACE_CBID_cuCtxSetCurrent,
    CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice,       CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState,
    CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute, CUPTI_DRIVER_TRACE_CBID_cuDeviceGetAttribute,
    CUPTI_DRIVER_TRACE_CBID_cuGetProcAddress_v2,  CUPTI_DRIVER_TRACE_CBID_cuDeviceGetCount,
    CUPTI_DRIVER_TRACE_CBID_cuDeviceGetPCIBusId,  // our own, of machine_reading.cpp
    CUPTI_DRIVER_TRACE_CBID_cuKernelGetName,      // of CUDA's runtime, for CUPTI: one for each launch
};

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

/// CUPTI serves one client. Asking for the place and giving it back shows whether another has it, and leaves it free
/// for a profiler the job itself may start later.
bool isFree() noexcept {
    if (g_api.unsubscribe == nullptr || (g_api.subscribe == nullptr && g_api.subscribeV2 == nullptr)) return true;
    void* subscriber = nullptr;
    char holder[256] = {};
    const Callback nothing = [](void*, int, uint32_t, const void*) {};
    int result;
    if (g_api.subscribeV2 != nullptr) {
        SubscriberParams params{sizeof(SubscriberParams), "rankscope", holder, sizeof holder};
        result = g_api.subscribeV2(&subscriber, nothing, nullptr, &params);
    } else {
        result = g_api.subscribe(&subscriber, nothing, nullptr);
    }
    if (result == kSuccess) {
        g_api.unsubscribe(subscriber);
        return true;
    }
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

void silenceNoise() noexcept {
    if (g_api.activityEnableRuntimeApi != nullptr)
        for (const uint32_t id : kNoisyRuntime) g_api.activityEnableRuntimeApi(id, 0);
    if (g_api.activityEnableDriverApi != nullptr)
        for (const uint32_t id : kNoisyDriver) g_api.activityEnableDriverApi(id, 0);
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
    if (!isSummarised) silenceNoise();
    g_enabled.store(true, std::memory_order_release);
    g_live.store(!isSummarised, std::memory_order_release);
    FixedText<64> message;
    message.append("CUPTI: ").append(int64_t{enabled}).append(" activity kinds");
    if (isSummarised) message.append(", kernels as summaries");
    g_session.tellStatus(Source::cupti, 1, firstError, message.c_str());
}

void disable() noexcept {
    g_live.store(false);
    if (!g_enabled.exchange(false)) return;
    for (const int kind : wantedKinds()) g_api.activityDisable(kind);
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
    if (g_yielded.load()) return;
    g_holder.append(client);
    const bool wasOurs = g_registered.load();
    if (wasOurs) {
        disable();
        flush(true);
        promiseZeroedBuffers(false);
    }
    g_yielded.store(true);
    if (wasOurs) tellHolder("CUPTI was taken over by ");
}

void afterForkInChild() noexcept {
    if (g_registered.load()) g_dead.store(true);
    g_live.store(false);
    g_enabled.store(false);
    g_flushing.store(false);
    g_summaryMutex.renew();
    g_buffers.renewLock();
    g_decoder.clear();
}

}  // namespace rankscope::injector::cupti
