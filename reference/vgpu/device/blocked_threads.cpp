// SPDX-License-Identifier: Apache-2.0
// Host threads that are blocked in libc: how they leave the bounds, who brings them back, and in which order threads of
// one process act.
#include <algorithm>

#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/operator_scope.h"
#include "reference/vgpu/device/wait_keys.h"

namespace rankscope::vgpu {

HostThread* LocalProcess::makeThread(int64_t startNs) {
    SharedLock lock(m_arena->lock);
    return &addThread(m_index, startNs, 0);
}

void LocalProcess::discardThread(HostThread* shared) {
    SharedLock lock(m_arena->lock);
    dropThread(*shared);
    engine().advance(m_index);
}

void LocalProcess::park(ThreadClock& thread, ParkKind kind, const char* call, int64_t deadlineNs, int32_t lockOwner,
                        const std::atomic<uint32_t>& isWoken) {
    if (kind != ParkKind::lock) priceUnpricedLaunches();
    sharedProcess().hostSleepers.fetch_add(1);
    DataPlane::instance().catchUp();
    SharedLock lock(m_arena->lock);
    if (!isWoken.load()) parkHere(thread, kind, call, deadlineNs, lockOwner);
}

/// Whoever leaves may have been the last that the others waited for. Arena::lock is held.
void LocalProcess::parkHere(ThreadClock& thread, ParkKind kind, const char* call, int64_t deadlineNs,
                            int32_t lockOwner) {
    thread.asked = 0;
    HostThread& shared = *thread.shared;
    if (!hasUnpricedLaunches()) shared.boundNs.store(thread.ns, std::memory_order_release);
    engine().park(shared, kind, call, deadlineNs);
    shared.lockOwner = hasUnpricedLaunches() ? kNeverWaits : lockOwner;
    while (shared.state == ThreadState::parked && (engine().advance(m_index) || engine().advanceQuiescent(m_index))) {
    }
}

void LocalProcess::mayLeave(ThreadClock& thread, int32_t lockOwner) {
    if (!hasUnpricedLaunches()) return;
    priceUnpricedLaunches();
    SharedLock lock(m_arena->lock);
    if (thread.shared->state == ThreadState::parked) thread.shared->lockOwner = lockOwner;
}

void LocalProcess::wake(HostThread* thread, int64_t ns, std::atomic<uint32_t>& isWoken) {
    SharedLock lock(m_arena->lock);
    if (ns != kNoClock) engine().enter(*thread, ns);
    isWoken.store(1, std::memory_order_release);
}

void LocalProcess::unpark(ThreadClock& thread, int64_t wakeNs) {
    HostThread& shared = *thread.shared;
    sharedProcess().hostSleepers.fetch_sub(1);
    thread.ns = std::max(thread.ns, wakeNs);
    if (shared.state.load(std::memory_order_acquire) != ThreadState::running) {
        SharedLock lock(m_arena->lock);
        if (shared.state != ThreadState::running) {
            // Somebody without a clock woke it. A message says that something has happened, so it is not earlier than
            // what is known; a lock or an answer from outside costs no time.
            if (shared.parkKind == ParkKind::message && wakeNs == kNoClock) {
                const Process& island = m_arena->processes[sharedProcess().island];
                thread.ns = std::max({thread.ns, presentNs(), island.nowNs - m_arena->launchNs});
            }
            engine().enter(shared, thread.ns);
        }
    }
    thread.ns = std::max(thread.ns, shared.boundNs.load(std::memory_order_acquire));
    publish(thread);
}

bool LocalProcess::reachDeadline(ThreadClock& thread, int64_t deadlineNs, const std::atomic<uint32_t>& isWoken) {
    priceUnpricedLaunches();
    HostThread& shared = *thread.shared;
    SharedLock lock(m_arena->lock);
    if (isWoken.load() || shared.state != ThreadState::parked) return false;
    turnWaiters()++;
    addActive(*m_arena, sharedProcess(), 1);
    shared.waitKind = WaitKind::timer;
    shared.waitUntilNs = deadlineNs;
    shared.waitCount = 0;
    shared.state = ThreadState::waiting;
    engine().forgetBlocker(m_index);
    sleepUntilResumed(thread, lock);
    turnWaiters()--;
    return !isWoken.load();
}

bool LocalProcess::standsStill() {
    SharedLock lock(m_arena->lock);
    return engine().standsStill();
}

void LocalProcess::observe(ThreadClock& thread) {
    sharedProcess().hostSleepers.fetch_sub(1);
    SharedLock lock(m_arena->lock);
    engine().observe(*thread.shared);
}

void LocalProcess::awaitTurn(ThreadClock& thread) {
    HostThread& shared = *thread.shared;
    Process& process = sharedProcess();
    const HostSleep sleep(process);
    SharedLock lock(m_arena->lock);
    if (!hasUnpricedLaunches()) shared.boundNs.store(thread.ns, std::memory_order_release);
    shared.waitKind = WaitKind::turn;
    shared.waitUntilNs = thread.ns;
    shared.waitCount = 0;
    shared.state = ThreadState::waiting;
    turnWaiters()++;
    engine().forgetBlocker(m_index);
    const int64_t ns = thread.ns;
    sleepUntilResumed(thread, lock);
    thread.ns = ns;
    turnWaiters()--;
}

/// True while a thread of this process waits for what another process may write.
bool LocalProcess::awaitsFamily() {
    SharedLock lock(m_arena->lock);
    for (uint32_t t = sharedProcess().firstThread; t != kNone; t = m_arena->threads[t].nextOfProcess) {
        const HostThread& thread = m_arena->threads[t];
        if (thread.state == ThreadState::parked && thread.parkKind == ParkKind::outside &&
            std::any_of(thread.waitKeys, thread.waitKeys + thread.waitKeyCount,
                        [](uint64_t key) { return (key & kEndBit) == 0; }))
            return true;
    }
    return false;
}

void LocalProcess::takeTurnInFamily(ThreadClock& thread) {
    awaitTurn(thread);
}

/// True while a timed wait of this process has not ended that ends before `ns`.
bool LocalProcess::awaitsDeadlineBefore(int64_t ns) {
    SharedLock lock(m_arena->lock);
    for (uint32_t t = sharedProcess().firstThread; t != kNone; t = m_arena->threads[t].nextOfProcess) {
        const HostThread& thread = m_arena->threads[t];
        if (thread.state == ThreadState::parked && thread.deadlineNs < ns) return true;
    }
    return false;
}

void LocalProcess::goOnAt(ThreadClock& thread, int64_t ns) {
    if (ns > thread.ns) {
        thread.ns = ns;
        if (awaitsDeadlineBefore(ns)) awaitTurn(thread);
    }
    publish(thread);
}

/// The thread's clock has moved: others of its process may have waited for that.
void LocalProcess::nudge() {
    SharedLock lock(m_arena->lock);
    engine().forgetBlocker(m_index);
    while (engine().advance(m_index)) {
    }
}

}  // namespace rankscope::vgpu
