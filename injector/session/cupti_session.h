// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "injector/cupti/cupti_api.h"

namespace rankscope::injector::cupti {

/// Set while CUPTI records all of its kinds for us, and not kernels for summaries only; read on the hot path.
extern std::atomic<bool> g_live;
extern Api g_api;

/// cuptiGetTimestamp of the library in reach, or null.
int (*timestampFunction() noexcept)(uint64_t*);

/// Finds CUPTI, registers our buffers and, with `enableNow`, begins. What fails is told in a status record. `load`
/// fills the seam.
void start(bool enableNow, bool (*load)(Api&) noexcept = loadApi) noexcept;
/// The capture range begins or ends.
void enable() noexcept;
void disable() noexcept;
/// Asks for what is complete, or with `forced` for everything.
void flush(bool forced) noexcept;
/// No more calls into CUPTI.
void finish() noexcept;
/// CUPTI does not survive fork: a child of a process that used it does without.
void afterForkInChild() noexcept;
/// Another client wants to be called back, as only one client of a process can be: waits and events come as records
/// from now on. Before CUPTI 13.4 their events have other numbers than before, so that a wait for an event that was
/// recorded before finds none.
void leavePlace() noexcept;
/// Another client takes CUPTI's buffers from now on.
void yieldTo(const char* client) noexcept;

/// Ties the GPU work that this thread's next call causes to an id of ours.
inline void pushCallId(uint64_t id) noexcept {
    if (g_live.load(std::memory_order_relaxed))
        g_api.activityPushExternalCorrelationId(kExternalCorrelationCustom0, id);
}
inline void popCallId() noexcept {
    if (!g_live.load(std::memory_order_relaxed)) return;
    uint64_t last = 0;
    g_api.activityPopExternalCorrelationId(kExternalCorrelationCustom0, &last);
}

}  // namespace rankscope::injector::cupti
