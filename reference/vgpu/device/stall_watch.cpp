// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/stall_watch.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace rankscope::vgpu {
namespace {

// A thread beside one that waits for the device: it may be in pthread_join or a condition variable for that very
// thread.
constexpr int kSiblingSleepsMs = 60;
// Any other sleeping thread may merely be slow; only a job that would else hang for ever goes on without it.
constexpr int kSleepsMs = 3000;
constexpr int kSpinsMs = 15000;
constexpr int kInspectMs = 50;

char taskState(int32_t pid, int32_t tid) {
    char path[64], text[512];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 'X';
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 'X';
    text[length] = 0;
    const char* end = std::strrchr(text, ')');
    return end && end[1] ? end[2] : 'X';
}

bool hasWaitingThread(const Arena& arena, const Process& process) {
    for (uint32_t t = process.firstThread; t != kNone; t = arena.threads[t].nextOfProcess)
        if (arena.threads[t].state == ThreadState::waiting) return true;
    return false;
}

}  // namespace

bool StallWatch::inspect(int sleptMs) {
    uint64_t progress = m_arena.progress.load();
    if (progress != m_progress) {
        m_progress = progress;
        m_stalledMs = 0;
        return false;
    }
    m_stalledMs += sleptMs;
    // One waiter looks for all, or a large job would do little else than read /proc.
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t nowMs = now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
    if (nowMs - m_arena.inspectedMs < kInspectMs) return false;
    m_arena.inspectedMs = nowMs;
    bool reaped = reapDeadProcesses();
    return excludeSleepers() || reaped;
}

bool StallWatch::reapDeadProcesses() {
    bool reaped = false;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        Process& process = m_arena.processes[p];
        if (!process.alive || p == m_process || processLives(process.pid, process.startTime)) continue;
        Engine(m_arena).removeProcess(p);
        reaped = true;
    }
    return reaped;
}

bool StallWatch::excludeSleepers() {
    bool excluded = false;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        const Process& process = m_arena.processes[p];
        if (!process.alive) continue;
        bool siblingWaits = hasWaitingThread(m_arena, process);
        if (m_stalledMs < (siblingWaits ? kSiblingSleepsMs : kSleepsMs)) continue;
        for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            HostThread& thread = m_arena.threads[t];
            if (thread.state != ThreadState::running) continue;
            char state = taskState(process.pid, thread.tid);
            bool sleeps = state == 'S' || state == 'X';
            if (!sleeps && m_stalledMs < kSpinsMs) continue;
            thread.state = ThreadState::excluded;
            excluded = true;
        }
    }
    return excluded;
}

}  // namespace rankscope::vgpu
