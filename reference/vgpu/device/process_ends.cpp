// SPDX-License-Identifier: Apache-2.0
// Processes of a family that end. Whoever waits for that is woken by the system, in its own time, and nothing of the
// virtual clock passes until it is.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/wait_keys.h"

namespace rankscope::vgpu {
namespace {

// So long after its end a process counts no more: where nobody is known to wait for it, and where somebody does, who on
// a busy machine waits for a processor.
constexpr int64_t kUnseenEndMs = 500, kAwaitedEndMs = 3000;

/// What the calling process's end can be seen by: its number, and pipes that it only writes, whose readers find their
/// end. Of one that it reads as well, as queues are that processes share, others hold the other end. Allocates nothing:
/// the process may be in a handler.
class EndKeys {
  public:
    EndKeys() {
        add(childKey(getpid()));
        add(anyChildKey(getppid()));
        constexpr int kMostDescriptors = 1024;  // of a worker some dozens are open
        for (int descriptor = 0; descriptor < kMostDescriptors; descriptor++) look(descriptor);
        for (size_t i = 0; i < m_written.count; i++)
            if (!m_read.has(m_written.keys[i])) add(m_written.keys[i]);
    }
    const uint64_t* begin() const { return m_keys; }
    uint32_t count() const { return m_count; }

  private:
    struct Pipes {
        static constexpr size_t kMost = 256;  // two queues and a sentinel for each of some sixty workers
        uint64_t keys[kMost];
        size_t count = 0;
        void add(uint64_t key) {
            if (count < kMost) keys[count++] = key;
        }
        bool has(uint64_t key) const { return std::find(keys, keys + count, key) != keys + count; }
    };

    void look(int descriptor) {
        struct stat status;
        if (fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
        const int access = fcntl(descriptor, F_GETFL) & O_ACCMODE;
        (access == O_WRONLY ? m_written : m_read).add(inodeKey(status));
    }
    void add(uint64_t key) {
        if (m_count < kMaxEndKeys && std::find(m_keys, m_keys + m_count, key) == m_keys + m_count)
            m_keys[m_count++] = key;
    }

    Pipes m_written, m_read;
    uint64_t m_keys[kMaxEndKeys];
    uint32_t m_count = 0;
};

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
    process.endingSinceMs = monotonicMs();
    m_arena->endings++;
}

void LocalProcess::forgetEnded(bool hasWaited) {
    if (!anyEnds()) return;
    SharedLock lock(m_arena->lock);
    const int64_t nowMs = monotonicMs();
    for (uint32_t p = 0; p < m_arena->processCount; p++) {
        Process& process = m_arena->processes[p];
        if (!process.alive || process.endingSinceMs == 0 || processLives(process.pid, process.startTime)) continue;
        if (process.goneSinceMs == 0) process.goneSinceMs = nowMs;
        const bool isAwaitedStill = isAwaited(*m_arena, process);
        const bool isSeen = hasWaited && process.family == sharedProcess().family && !isAwaitedStill;
        if (isSeen || nowMs - process.goneSinceMs >= (isAwaitedStill ? kAwaitedEndMs : kUnseenEndMs))
            engine().removeProcess(p);
    }
    while (engine().advance(m_index)) {
    }
}

}  // namespace rankscope::vgpu
