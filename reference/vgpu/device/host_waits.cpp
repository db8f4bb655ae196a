// SPDX-License-Identifier: Apache-2.0
// Host threads and virtual time: how far they may run ahead, and how their clocks meet those of the streams they wait
// for.
#include <algorithm>

#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/deadlock.h"
#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/operator_scope.h"
#include "reference/vgpu/device/stall_watch.h"

namespace rankscope::vgpu {
namespace {

// A full queue is waited for until so many operations have ended: at each single one every rank would take turns with
// every other.
constexpr uint64_t kFreedTogether = 64;
// Whoever comes to wait moves the simulation and wakes the others; they look by themselves only in case nobody comes
// any more.
constexpr int kFirstPollMs = 25, kLastPollMs = 200;
// Or in case a process ends, which takes the system some milliseconds and is told to nobody.
constexpr int kEndingPollMs = 2;

constexpr uint32_t kMostQuestions = 200;

constexpr int64_t kOwnClock = -1;
thread_local int64_t t_borrowedNs = kOwnClock;

}  // namespace

BorrowedClock::BorrowedClock(int64_t ns) {
    t_borrowedNs = ns;
}
BorrowedClock::~BorrowedClock() {
    t_borrowedNs = kOwnClock;
}
void BorrowedClock::set(int64_t ns) {
    t_borrowedNs = ns;
}

void LocalProcess::publish(ThreadClock& thread) {
    if (hasUnpricedLaunches()) return;
    thread.shared->boundNs.store(thread.ns, std::memory_order_release);
    if (turnWaiters().load(std::memory_order_acquire)) nudge();
}

int64_t LocalProcess::nowStamp() {
    if (t_borrowedNs != kOwnClock) return stamp(t_borrowedNs);
    const ThreadClock* thread = clockIfAny();
    if (thread && thread->shared->state != ThreadState::observing) return stamp(thread->ns);
    int64_t now = kEpochNs;
    if (m_arena) {  // a thread that never used CUDA sees the time of the one that is furthest
        now = m_arena->processes[m_index].lastClockNs;
        for (uint32_t t = m_arena->processes[m_index].firstThread; t != kNone; t = m_arena->threads[t].nextOfProcess)
            now = std::max(now, m_arena->threads[t].boundNs.load());
    }
    return stamp(now);
}

void LocalProcess::throttle(LocalStream& stream) {
    StreamPoint points[2];
    size_t count = 0;
    {
        std::lock_guard guard(m_mutex);
        if (stream.submitted >= stream.roomUntil) {
            points[count++] = {stream.shared, stream.submitted - kStreamDepth + kFreedTogether};
            stream.roomUntil = stream.submitted + kFreedTogether;
        }
        if (m_submitted >= m_roomUntil) {
            m_roomUntil = m_submitted + kFreedTogether;
            StreamPoint old = m_order[(m_submitted - kProcessDepth + kFreedTogether - 1) % kOpsPerProcess];
            for (const auto& other : m_streams)
                if (other->shared == old.stream && other->submitted - old.seq < kStreamHistory / 2)
                    points[count++] = old;
        }
    }
    if (count) waitFor({points, count});
}

int64_t LocalProcess::endOf(StreamPoint point) const {
    return m_arena->streams[point.stream].endNs[point.seq % kStreamHistory].load();
}

void LocalProcess::sleepUntilResumed(ThreadClock& thread, SharedLock& lock) {
    StallWatch watch(*m_arena, m_index);
    HostThread& shared = *thread.shared;
    int pauseMs = kFirstPollMs;
    for (;;) {
        while (shared.state == ThreadState::waiting &&
               (engine().advance(m_index) || engine().advanceQuiescent(m_index))) {
        }
        if (shared.state != ThreadState::waiting) break;
        uint32_t word = shared.futex.load();
        lock.unlock();
        futexWait(shared.futex, word, m_arena->endings.load() ? kEndingPollMs : pauseMs);
        if (shared.state.load(std::memory_order_acquire) != ThreadState::waiting)
            break;  // who resumed it, moved the simulation: the lock is not needed
        endIfDeadlocked(*m_arena);
        forgetEnded(false);
        lock.lock();
        if (shared.state == ThreadState::waiting) watch.inspect(pauseMs);
        pauseMs = std::min(2 * pauseMs, kLastPollMs);
    }
    thread.ns = shared.resumeNs;
}

void LocalProcess::waitFor(std::span<const StreamPoint> points) {
    priceUnpricedLaunches();
    ThreadClock& thread = clock();
    HostThread& shared = *thread.shared;
    while (!points.empty()) {
        size_t count = std::min<size_t>(points.size(), kMaxWaits);
        shared.waitCount = static_cast<uint32_t>(count);
        shared.waitKind = WaitKind::ops;
        for (size_t i = 0; i < count; i++) {
            shared.waitStream[i] = points[i].stream;
            shared.waitSeq[i] = points[i].seq;
        }
        points = points.subspan(count);
        shared.boundNs.store(thread.ns, std::memory_order_release);
        int64_t resumeNs = 0;
        if (engine().waitSatisfied(shared, resumeNs)) {
            thread.ns = resumeNs;
            continue;
        }
        const HostSleep sleep(m_arena->processes[m_index]);
        DataPlane::instance().catchUp();
        SharedLock lock(m_arena->lock);
        if (engine().waitSatisfied(shared, resumeNs)) {
            thread.ns = resumeNs;
            continue;
        }
        shared.state = ThreadState::waiting;
        sleepUntilResumed(thread, lock);
    }
    publish(thread);
}

/// An observer asks again and again, perhaps the only thread that runs.
void LocalProcess::moveOn() {
    DataPlane::instance().catchUp();
    SharedLock lock(m_arena->lock);
    while (engine().advance(m_index) || engine().advanceQuiescent(m_index)) {
    }
}

void LocalProcess::settle() {
    priceUnpricedLaunches();
    ThreadClock& thread = askingClock();
    HostThread& shared = *thread.shared;
    const HostSleep sleep(m_arena->processes[m_index]);
    DataPlane::instance().catchUp();
    SharedLock lock(m_arena->lock);
    shared.boundNs.store(thread.ns, std::memory_order_release);
    shared.waitKind = WaitKind::until;
    shared.waitUntilNs = thread.ns;
    shared.waitCount = 0;
    shared.state = ThreadState::waiting;
    engine().forgetBlocker(m_index);
    sleepUntilResumed(thread, lock);
}

bool LocalProcess::doneNow(StreamPoint point) {
    if (point.stream == kNone || point.seq == 0) return true;
    ThreadClock& thread = askingClock();
    const Stream& stream = m_arena->streams[point.stream];
    if (observes(thread)) {
        moveOn();
        return stream.finishedSeq.load(std::memory_order_acquire) >= point.seq;
    }
    if (stream.finishedSeq.load(std::memory_order_acquire) < point.seq) settle();
    const bool done = stream.finishedSeq.load(std::memory_order_acquire) >= point.seq && endOf(point) <= thread.ns;
    // Whoever asks so often without a pause waits in this way, and time must pass for it.
    thread.asked = done ? 0 : thread.asked + 1;
    if (thread.asked > kMostQuestions) thread.shared->hasActed = 1;
    return done;
}

bool LocalProcess::haveEnded(std::span<const StreamPoint> points) {
    moveOn();
    const bool haveFinished = std::ranges::all_of(points, [&](StreamPoint point) {
        return m_arena->streams[point.stream].finishedSeq.load(std::memory_order_acquire) >= point.seq;
    });
    return haveFinished && DataPlane::instance().isThrough(points);
}

bool LocalProcess::waitForComm(uint32_t commIndex) {
    priceUnpricedLaunches();
    ThreadClock& thread = clock();
    HostThread& shared = *thread.shared;
    Comm& comm = m_arena->comms[commIndex];
    const HostSleep sleep(m_arena->processes[m_index]);
    DataPlane::instance().catchUp();
    SharedLock lock(m_arena->lock);
    if (!comm.complete && !comm.aborted) {
        shared.boundNs.store(thread.ns, std::memory_order_release);
        shared.waitKind = WaitKind::comm;
        shared.waitComm = commIndex;
        shared.state = ThreadState::waiting;
        sleepUntilResumed(thread, lock);
    } else if (comm.complete) {
        thread.ns = std::max(thread.ns, comm.readyNs);
    }
    lock.unlock();
    publish(thread);
    return comm.complete;
}

}  // namespace rankscope::vgpu
