// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/deadlock.h"

#include <unistd.h>

#include <cstdio>

#include "reference/vgpu/device/activity.h"

namespace rankscope::vgpu {
namespace {

bool waitsForDevice(const HostThread& thread) {
    return thread.state == ThreadState::waiting &&
           (thread.waitKind == WaitKind::ops || thread.waitKind == WaitKind::comm);
}

/// Blocked in its own process, and nothing but a thread of it ends that.
bool isBlockedInside(const HostThread& thread) {
    return thread.state == ThreadState::parked && thread.parkKind != ParkKind::outside && thread.deadlineNs == kForever;
}

/// A launcher, a store's server, a data loader's worker: they wait for orders.
bool takesPart(const Arena& arena, const Process& process) {
    if (!process.alive || process.isForked) return false;
    if (process.rank >= 0 || process.submitted.load() != 0) return true;
    for (uint32_t t = process.firstThread; t != kNone; t = arena.threads[t].nextOfProcess)
        if (waitsForDevice(arena.threads[t])) return true;
    return false;
}

bool isStuck(const Arena& arena, const Process& process) {
    bool isMainBlocked = false, isAnyoneElse = false;
    for (uint32_t t = process.firstThread; t != kNone; t = arena.threads[t].nextOfProcess) {
        const HostThread& thread = arena.threads[t];
        const bool isMain = thread.tid == process.pid;
        if (thread.state == ThreadState::free) continue;
        if (isMain && waitsForDevice(thread)) return true;
        if (isMain) isMainBlocked = isBlockedInside(thread);
        if (!isMain && thread.hasActed) isAnyoneElse |= !waitsForDevice(thread) && !isBlockedInside(thread);
    }
    return isMainBlocked && !isAnyoneElse;
}

bool misses(const Arena& arena, uint32_t live) {
    for (uint32_t c = 0; c < arena.commCount; c++)
        if (arena.comms[c].inUse && !arena.comms[c].complete && arena.comms[c].size > live) return true;
    return false;
}

}  // namespace

bool isDeadlock(const Arena& arena) {
    uint32_t live = 0;
    bool waits = false;
    for (uint32_t p = 0; p < arena.processCount; p++) {
        const Process& process = arena.processes[p];
        live += process.alive != 0;
        if (!takesPart(arena, process)) continue;
        if (!isStuck(arena, process)) return false;
        for (uint32_t t = process.firstThread; t != kNone; t = arena.threads[t].nextOfProcess)
            waits |= waitsForDevice(arena.threads[t]);
    }
    return waits && !misses(arena, live);  // members that are still to come may be what all wait for
}

void endIfDeadlocked(const Arena& arena) {
    if (arena.deadlocked.load(std::memory_order_acquire)) endEarly(kExitDeadlock);
}

void endEarly(int status) {
    static std::atomic<bool> isEnding{false};
    while (isEnding.exchange(true)) pause();  // another thread is here as well, and the process is going
    std::fflush(stderr);
    LocalProcess& process = LocalProcess::instance();
    // Only threads that have a clock have issued anything.
    if (LocalProcess::clockIfAny() && process.mutex().try_lock()) {
        process.harvest();
        process.mutex().unlock();
        deliverBuffers(true);
    }
    _exit(status);
}

}  // namespace rankscope::vgpu
