// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/stall_watch.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "reference/vgpu/device/deadlock.h"
#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/seconds.h"
#include "reference/vgpu/device/thread_report.h"

namespace rankscope::vgpu {
namespace {

// One waiter looks for all, or a large job would do little else than read /proc.
constexpr int kInspectMs = 50;

int settableMs(const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    return text && *text ? std::atoi(text) : otherwise;
}

// When a job that stands still is told of: long enough for a slow disk or a debugger's step. RANKSCOPE_VGPU_TELL_MS
// sets it.
constexpr int kTellMs = 10'000;

int tellAfterMs() {
    static const int ms = settableMs("RANKSCOPE_VGPU_TELL_MS", kTellMs);
    return ms;
}

// When a thread is given up that sleeps in a call nobody told us of, or spins: what depends on it is no longer
// reproducible. Longer than any real work between two CUDA calls; a thread that still works (it used the processor
// meanwhile) is waited for. RANKSCOPE_VGPU_GIVE_UP_MS sets it.
constexpr int kGiveUpMs = 20'000;

int giveUpAfterMs() {
    static const int ms = settableMs("RANKSCOPE_VGPU_GIVE_UP_MS", kGiveUpMs);
    return ms;
}

int64_t nowNs() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

StallWatch::StallWatch(Arena& arena, uint32_t process)
    : m_arena(arena),
      m_process(process),
      m_lookedNs(nowNs()),
      m_progress(arena.progress.load()),
      m_moves(arena.moves.load()) {}

/// Since the last look, in ns. A wait may be woken early, and one that took longer than was asked for is that of a job
/// that was stopped: such time does not count.
int64_t StallWatch::sleptNs(int waitMs) {
    const int64_t now = nowNs();
    return std::min(now - std::exchange(m_lookedNs, now), waitMs * kNsPerMs);
}

bool StallWatch::inspect(int waitMs) {
    const uint64_t progress = m_arena.progress.load(), moves = m_arena.moves.load();
    const int64_t slept = sleptNs(waitMs);
    m_unmovedNs = moves == m_moves ? m_unmovedNs + slept : 0;
    m_stalledNs = progress == m_progress ? m_stalledNs + slept : 0;
    m_progress = progress;
    m_moves = moves;
    if (m_unmovedNs == 0) return false;
    const int64_t nowMs = m_lookedNs / kNsPerMs;
    if (nowMs - m_arena.inspectedMs < kInspectMs) return false;
    m_arena.inspectedMs = nowMs;
    const bool reaped = reapDeadProcesses();
    if (!reaped) tellIfStuck();
    return giveUpStuckThreads() || reaped;
}

void StallWatch::lookWhileBlocked(int waitMs) {
    endIfDeadlocked(m_arena);
    SharedLock lock(m_arena.lock);
    inspect(waitMs);
    Engine engine(m_arena);
    while (engine.advance(m_process) || engine.advanceQuiescent(m_process)) {
    }
}

bool StallWatch::reapDeadProcesses() {
    bool reaped = false;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        Process& process = m_arena.processes[p];
        // One that ends is somebody's child, who sees that for itself (LocalProcess::forgetEnded).
        if (!process.alive || p == m_process || process.endingSinceMs != 0) continue;
        if (processLives(process.pid, process.startTime)) continue;
        Engine(m_arena).removeProcess(p);
        reaped = true;
    }
    return reaped;
}

void StallWatch::tellIfStuck() {
    if (m_unmovedNs < tellAfterMs() * kNsPerMs || m_arena.deadlockTold == m_moves) return;
    if (!Engine(m_arena).isIdle()) return;  // somebody works; whether he is stuck is seen below
    m_arena.deadlockTold = m_moves;
    const bool isForEver = isDeadlock(m_arena);
    reportThreads(m_arena, static_cast<int>(m_unmovedNs / kNsPerMs), isForEver);
    if (isForEver) m_arena.deadlocked.store(1, std::memory_order_release);
}

/// The one place where real time decides, for threads that are blocked in a way that is not seen here.
bool StallWatch::giveUpStuckThreads() {
    if (m_stalledNs < giveUpAfterMs() * kNsPerMs) return false;
    bool gaveUp = false;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        const Process& process = m_arena.processes[p];
        if (!process.alive) continue;
        for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            HostThread& thread = m_arena.threads[t];
            if (thread.state != ThreadState::running || thread.sleepsOut.load()) continue;
            const char state = threadStateOf(process.pid, thread.tid);
            if (state != 'S' && state != 'X' && m_stalledNs < 3 * giveUpAfterMs() * kNsPerMs) continue;
            reportGivenUp(m_arena, thread);
            Engine(m_arena).park(thread, ParkKind::message, "a call that is not seen");
            Engine(m_arena).observe(thread);
            m_arena.fallbacks++;
            gaveUp = true;
        }
    }
    return gaveUp;
}

}  // namespace rankscope::vgpu

/// How many threads of the job were given up so far, after which two runs may differ: for who records the job.
extern "C" unsigned rankscopeVgpuThreadsGivenUp() {
    using namespace rankscope::vgpu;
    LocalProcess* process = LocalProcess::ifAny();
    return process && process->hasArena() ? process->arena().fallbacks : 0;
}
