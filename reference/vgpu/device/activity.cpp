// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/activity.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "reference/vgpu/device/profiler_clock.h"

namespace rankscope::vgpu {
namespace {

struct Buffer {
    uint8_t* memory = nullptr;
    size_t capacity = 0, used = 0, maxRecords = 0, records = 0;
};

struct ActivityState {
    std::mutex mutex;
    std::atomic<bool> wanted[CUPTI_ACTIVITY_KIND_COUNT]{};
    std::set<std::pair<int, uint32_t>> apiOff, apiOn;
    std::atomic<bool> anyApiRule{false};
    CUpti_BuffersCallbackRequestFunc request = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    Buffer current;
    std::vector<Buffer> full;
    std::atomic<bool> hasFull{false};
    std::atomic<uint32_t> correlation{0};
    size_t dropped = 0;
};

ActivityState* g_state = new ActivityState;  // never destroyed: exit handlers of profilers still flush

thread_local std::vector<uint64_t> t_external[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

bool knownKind(CUpti_ActivityKind kind) {
    return kind > CUPTI_ACTIVITY_KIND_INVALID && kind < CUPTI_ACTIVITY_KIND_COUNT;
}

CUpti_ActivityKind asStored(CUpti_ActivityKind kind) {
    return kind == CUPTI_ACTIVITY_KIND_KERNEL ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : kind;
}

/// A kind that is switched overrides what was chosen one by one before (cupti_activity.h of CUDA 13.0).
void forgetChosenCalls(CUpti_ActivityKind kind) {
    if (kind != CUPTI_ACTIVITY_KIND_RUNTIME && kind != CUPTI_ACTIVITY_KIND_DRIVER) return;
    const CUpti_CallbackDomain domain =
        kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
    std::lock_guard guard(g_state->mutex);
    for (auto* rules : {&g_state->apiOn, &g_state->apiOff})
        std::erase_if(*rules, [domain](const auto& rule) { return rule.first == domain; });
}

}  // namespace

bool activityWanted(CUpti_ActivityKind kind) {
    return g_state->wanted[kind].load(std::memory_order_relaxed);
}

bool apiWanted(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    bool wanted = activityWanted(domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                                       : CUPTI_ACTIVITY_KIND_DRIVER);
    if (!g_state->anyApiRule.load(std::memory_order_relaxed)) return wanted;
    std::lock_guard guard(g_state->mutex);
    if (g_state->apiOff.contains({domain, id})) return false;
    return wanted || g_state->apiOn.contains({domain, id});
}

void appendRecord(const void* record, size_t bytes) {
    std::lock_guard guard(g_state->mutex);
    Buffer& buffer = g_state->current;
    bool fits = buffer.memory && buffer.used + bytes <= buffer.capacity &&
                (!buffer.maxRecords || buffer.records < buffer.maxRecords);
    if (!fits) {
        if (buffer.memory) {
            g_state->full.push_back(buffer);
            g_state->hasFull = true;
        }
        buffer = Buffer{};
        if (g_state->request) g_state->request(&buffer.memory, &buffer.capacity, &buffer.maxRecords);
        if (!buffer.memory || buffer.capacity < bytes) {
            g_state->dropped++;
            return;
        }
    }
    std::memcpy(buffer.memory + buffer.used, record, bytes);
    buffer.used += bytes;
    buffer.records++;
}

void recordExternalCorrelation(uint32_t correlation) {
    if (!activityWanted(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
    for (int kind = 0; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; kind++) {
        if (t_external[kind].empty()) continue;
        CUpti_ActivityExternalCorrelation record{};
        record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
        record.externalId = t_external[kind].back();
        record.correlationId = correlation;
        appendRecord(&record, sizeof record);
    }
}

void deliverBuffers(bool partial) {
    if (!partial && !g_state->hasFull.load(std::memory_order_relaxed)) return;
    std::vector<Buffer> ready;
    CUpti_BuffersCallbackCompleteFunc complete;
    {
        std::lock_guard guard(g_state->mutex);
        ready.swap(g_state->full);
        g_state->hasFull = false;
        if (partial && g_state->current.memory) {
            ready.push_back(g_state->current);
            g_state->current = Buffer{};
        }
        complete = g_state->complete;
    }
    if (!complete) return;
    for (const Buffer& buffer : ready) complete(nullptr, 0, buffer.memory, buffer.capacity, buffer.used);
}

uint32_t nextCorrelation() {
    return ++g_state->correlation;
}

void resetActivityAfterFork() {
    g_state = new ActivityState;
}

}  // namespace rankscope::vgpu

using namespace rankscope::vgpu;

extern "C" {

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
    if (!knownKind(kind)) return CUPTI_ERROR_INVALID_KIND;
    forgetChosenCalls(kind);
    g_state->wanted[asStored(kind)] = true;
    ProfilerClock::instance().setRecording(true);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
    if (!knownKind(kind)) return CUPTI_ERROR_INVALID_KIND;
    forgetChosenCalls(kind);
    g_state->wanted[asStored(kind)] = false;
    ProfilerClock::instance().setRecording(
        std::ranges::any_of(g_state->wanted, [](const auto& on) { return on.load(); }));
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext, CUpti_ActivityKind kind) {
    return cuptiActivityEnable(kind);
}
CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext, CUpti_ActivityKind kind) {
    return cuptiActivityDisable(kind);
}
CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
    return cuptiActivityEnable(kind);
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
    if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard guard(g_state->mutex);
    g_state->request = request;
    g_state->complete = complete;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t) {
    LocalProcess& process = LocalProcess::instance();
    if (process.attached()) {
        std::lock_guard guard(process.mutex());
        process.harvest();
    }
    deliverBuffers(true);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext, uint32_t, uint32_t flag) {
    return cuptiActivityFlushAll(flag);
}
// Buffers are handed over as soon as they are full, so a period changes nothing.
CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t) {
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBytes, CUpti_Activity** record) {
    if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t* next = buffer;
    if (*record) {
        size_t bytes = recordBytes((*record)->kind);
        if (bytes == 0) return CUPTI_ERROR_INVALID_KIND;
        next = reinterpret_cast<uint8_t*>(*record) + bytes;
    }
    if (next >= buffer + validBytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
    if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard guard(g_state->mutex);
    *dropped = std::exchange(g_state->dropped, 0);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    t_external[kind].push_back(id);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* lastId) {
    if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (t_external[kind].empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    if (lastId) *lastId = t_external[kind].back();
    t_external[kind].pop_back();
    return CUPTI_SUCCESS;
}

static CUptiResult ruleFor(CUpti_CallbackDomain domain, CUpti_CallbackId id, uint8_t enable) {
    std::lock_guard guard(g_state->mutex);
    (enable ? g_state->apiOn : g_state->apiOff).insert({domain, id});
    (enable ? g_state->apiOff : g_state->apiOn).erase({domain, id});
    g_state->anyApiRule = true;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t enable) {
    return ruleFor(CUPTI_CB_DOMAIN_RUNTIME_API, id, enable);
}
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t enable) {
    return ruleFor(CUPTI_CB_DOMAIN_DRIVER_API, id, enable);
}

}  // extern "C"
