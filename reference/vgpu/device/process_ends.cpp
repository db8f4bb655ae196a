// SPDX-License-Identifier: Apache-2.0
// Processes of a family that end. Whoever waits for that is woken by the system, in its own time, and nothing of the
// virtual clock passes until it is.
#include <algorithm>

#include "reference/vgpu/device/end_keys.h"
#include "reference/vgpu/device/local_process.h"

namespace rankscope::vgpu {
namespace {

// So long after its end a process counts no more: where nobody is known to wait for it, and where somebody does, who on
// a busy machine waits for a processor.
constexpr int64_t kUnseenEndMs = 500, kAwaitedEndMs = 3000;
// Threads that wait look each 2 to 20 ms while a process ends.
constexpr int64_t kLongestLookMs = 40;

/// Whether a thread still waits for what only the end of that process can bring. Arena::lock is held.
bool isAwaited(const Arena& arena, const Process& process) {
    const uint64_t* const end = process.endKeys + process.endKeyCount;
    return std::any_of(arena.threads, arena.threads + arena.threadCount, [&](const HostThread& thread) {
        return thread.state == ThreadState::parked && thread.parkKind == ParkKind::outside &&
               std::find_first_of(process.endKeys, end, thread.waitKeys, thread.waitKeys + thread.waitKeyCount) != end;
    });
}

}  // namespace

void LocalProcess::beginEnding() {
    if (!m_arena || m_hasLeft.load()) return;
    const EndKeys keys;
    SharedLock lock(m_arena->lock);
    bool isLast = true;
    for (uint32_t p = 0; p < m_arena->processCount; p++)
        isLast = isLast && (p == m_index || !m_arena->processes[p].alive);
    if (isLast) {
        lock.unlock();
        return leave();  // the arena goes with it
    }
    Process& process = sharedProcess();
    if (process.endingSinceMs != 0) return;
    process.endKeyCount = keys.count();
    std::copy_n(keys.begin(), keys.count(), process.endKeys);
    const ThreadClock* own = clockInBounds();
    process.endNs = own ? own->ns : kNoClock;
    process.endingSinceMs = monotonicMs();
    m_arena->endings++;
}

int64_t LocalProcess::whenEnded(uint64_t key) {
    SharedLock lock(m_arena->lock);
    int64_t ns = kNoClock;
    for (uint32_t p = 0; p < m_arena->processCount; p++) {
        const Process& process = m_arena->processes[p];
        const uint64_t* const end = process.endKeys + process.endKeyCount;
        if (std::find(process.endKeys, end, key) != end) ns = std::max(ns, process.endNs);
    }
    return ns;
}

void LocalProcess::forgetEnded(bool hasWaited) {
    if (!anyEnds()) return;
    SharedLock lock(m_arena->lock);
    const int64_t nowMs = monotonicMs();
    for (uint32_t p = 0; p < m_arena->processCount; p++) {
        Process& process = m_arena->processes[p];
        if (!process.alive || process.endingSinceMs == 0 || processLives(process.pid, process.startTime)) continue;
        if (!process.isGone) process.gone.begin(nowMs);
        process.isGone = 1;
        const int64_t goneMs = process.gone.look(nowMs, kLongestLookMs);
        const bool isAwaitedStill = isAwaited(*m_arena, process);
        const bool isSeen = hasWaited && process.family == sharedProcess().family && !isAwaitedStill;
        if (isSeen || goneMs >= (isAwaitedStill ? kAwaitedEndMs : kUnseenEndMs)) engine().removeProcess(p);
    }
    while (engine().advance(m_index)) {
    }
}

}  // namespace rankscope::vgpu
