// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/threads/shared_semaphores.h"

#include <errno.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "reference/vgpu/threads/descriptors.h"
#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/sleeps.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(sem_t*)> realTryWait("sem_trywait"), realPost("sem_post");

// Who waits looks so often, in real time, whether somebody without a clock has posted.
constexpr int64_t kLookMs = 20;

/// What a place in shared memory is called in all processes: by its file (a name in /dev/shm, or what the system has
/// for memory without one) and where it lies in that. 0: it is none that others share.
uint64_t placeInFile(const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return 0;
    uint64_t key = 0;
    char* line = nullptr;
    size_t capacity = 0;
    while (key == 0 && getline(&line, &capacity, maps) > 0) {
        uint64_t begin, end, offset, inode;
        unsigned major, minor;
        char rights[5];
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &begin, &end, rights, &offset,
                        &major, &minor, &inode) != 7 ||
            at < begin || at >= end)
            continue;
        if (rights[3] != 's') break;
        const uint64_t place[] = {major, minor, inode, offset + (at - begin)};
        key = keyOfBytes({reinterpret_cast<const char*>(place), sizeof place});
    }
    std::free(line);
    std::fclose(maps);
    return key;
}

class Places {
  public:
    uint64_t of(const void* semaphore) {
        const std::lock_guard guard(m_mutex);
        const auto [entry, isNew] = m_keys.try_emplace(semaphore, 0);
        if (isNew) entry->second = placeInFile(semaphore);
        return entry->second;
    }
    void forget(const void* semaphore) {
        const std::lock_guard guard(m_mutex);
        m_keys.erase(semaphore);
    }
    void forgetAfterFork() { new (&m_mutex) std::mutex; }

  private:
    std::mutex m_mutex;
    std::unordered_map<const void*, uint64_t> m_keys;
};
Places& places() {
    static auto* all = new Places;
    return *all;
}

/// Blocked until somebody posts. False when the deadline came first.
bool sleepUntilPosted(sem_t* semaphore, uint64_t key, const char* call, const Deadline* deadline, int64_t deadlineNs) {
    const int64_t timeoutNs = deadline ? std::max<int64_t>(0, deadlineNs - anyClock()->ns) : -1;
    BlockedOutside blocked(call, {&key, key ? 1u : 0u}, timeoutNs);
    for (bool wasPosted = false;;) {
        if (blocked.isTold(kLookMs)) return true;
        // Who posts tells right behind that: only a post that stays untold is one of somebody without a clock.
        int value = 0;
        const bool isPosted = sem_getvalue(semaphore, &value) == 0 && value > 0;
        if (isPosted && wasPosted) return true;
        wasPosted = isPosted;
        if (!isPosted && deadline && blocked.isOver(leftNs(*deadline) <= 0)) return false;
    }
}

}  // namespace

int tryShared(sem_t* semaphore) {
    if (ThreadClock* clock = activeClock()) LocalProcess::instance().takeTurnInFamily(*clock);
    return realTryWait(semaphore);
}

int waitShared(sem_t* semaphore, const char* call, const Deadline* deadline) {
    const uint64_t key = places().of(semaphore);
    const int64_t deadlineNs = deadline ? anyClock()->ns + deadline->lengthNs : kForever;
    for (;;) {
        if (ThreadClock* clock = activeClock()) LocalProcess::instance().takeTurnInFamily(*clock);
        if (key) LocalProcess::instance().whenWritten(key, kAllBytes);  // posts up to here are in its value
        if (realTryWait(semaphore) == 0) return 0;
        if (errno != EAGAIN) return -1;
        if (sleepUntilPosted(semaphore, key, call, deadline, deadlineNs)) continue;
        sleepOut(*deadline);
        errno = ETIMEDOUT;
        return -1;
    }
}

int postShared(sem_t* semaphore) {
    ThreadClock* clock = activeClock();
    if (clock) LocalProcess::instance().takeTurnInFamily(*clock);
    const int result = realPost(semaphore);
    if (const uint64_t key = places().of(semaphore)) LocalProcess::instance().tellWritten(key, 1, clockNs(clock));
    return result;
}

void forgetShared(const sem_t* semaphore) {
    places().forget(semaphore);
}

void forgetSharedAfterFork() {
    places().forgetAfterFork();
}

}  // namespace rankscope::vgpu::threads
