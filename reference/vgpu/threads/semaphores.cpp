// SPDX-License-Identifier: Apache-2.0
// Semaphores inside a process. A post by the thread that took the semaphore last gives back a lock; any other post is a
// message, and who takes it goes on no earlier than it was sent. Python's locks are semaphores, too, used in both ways.
#include <errno.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/shared_semaphores.h"
#include "reference/vgpu/threads/sleeps.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(sem_t*)> realWait("sem_wait"), realTryWait("sem_trywait"), realPost("sem_post"),
    realDestroy("sem_destroy"), realClose("sem_close");
RealCall<int (*)(sem_t*, const timespec*)> realTimedWait("sem_timedwait");
RealCall<int (*)(sem_t*, clockid_t, const timespec*)> realClockWait("sem_clockwait");

// Behind the value glibc keeps how its futex is shared: 0 inside a process.
bool isShared(const sem_t* semaphore) {
    int sharing;
    __builtin_memcpy(&sharing, reinterpret_cast<const char*>(semaphore) + 8, sizeof sharing);
    return sharing != 0;
}

constexpr char kBetween[] = "sem_wait between processes";

struct Use {
    ThreadClock* lastTaker = nullptr;
    std::deque<int64_t> messages;  ///< when the posts that nobody has taken yet were sent
};

constexpr size_t kMostMessages = 4096;

class Uses {
  public:
    void post(const void* semaphore, ThreadClock* clock) {
        const std::lock_guard guard(m_mutex);
        Use& use = m_uses[semaphore];
        if (use.lastTaker != clock) use.messages.push_back(clockNs(clock));
        if (use.messages.size() > kMostMessages) use.messages.pop_front();
    }
    /// When the message that is taken now was sent, or kNoClock.
    int64_t take(const void* semaphore, ThreadClock* clock) {
        const std::lock_guard guard(m_mutex);
        Use& use = m_uses[semaphore];
        use.lastTaker = clock;
        if (use.messages.empty()) return kNoClock;
        const int64_t sentNs = use.messages.front();
        use.messages.pop_front();
        return sentNs;
    }
    void forget(const void* semaphore) {
        const std::lock_guard guard(m_mutex);
        m_uses.erase(semaphore);
    }
    void forgetAfterFork() { new (&m_mutex) std::mutex; }

  private:
    std::mutex m_mutex;
    std::unordered_map<const void*, Use> m_uses;
};
Uses& uses() {
    static auto* all = new Uses;
    return *all;
}

void taken(sem_t* semaphore, ThreadClock& clock) {
    clock.ns = std::max(clock.ns, uses().take(semaphore, &clock));
    if (LocalProcess::instance().severalAct()) clock.ns = std::max(clock.ns, stampOf(semaphore));
    LocalProcess::instance().publish(clock);
}

int wait(sem_t* semaphore, const char* call, const Deadline* deadline) {
    for (;;) {
        ThreadClock* active = activeClock();
        if (active) LocalProcess::instance().takeTurn(*active);
        if (realTryWait(semaphore) == 0) {
            if (active) taken(semaphore, *active);
            return 0;
        }
        if (errno != EAGAIN) return -1;
        Waiter waiter(semaphore, anyClock(), ParkKind::lock);
        if (realTryWait(semaphore) == 0) {
            if (active) taken(semaphore, *active);
            return 0;
        }
        if (!waiter.block(call, deadline)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

int waitUntil(sem_t* semaphore, clockid_t clock, const timespec* until) {
    if (until->tv_nsec < 0 || until->tv_nsec >= 1'000'000'000) {
        errno = EINVAL;
        return -1;
    }
    const Deadline deadline = deadlineAt(clock, *until);
    return isShared(semaphore) ? waitShared(semaphore, kBetween, &deadline)
                               : wait(semaphore, "sem_timedwait", &deadline);
}

}  // namespace

void forgetSemaphoresAfterFork() {
    uses().forgetAfterFork();
    forgetSharedAfterFork();
}

}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

#define RANKSCOPE_NOT_OURS() (callerAt(__builtin_return_address(0)) == Caller::profiler)

extern "C" {

int sem_wait(sem_t* semaphore) {
    if (RANKSCOPE_NOT_OURS()) return realWait(semaphore);
    if (isShared(semaphore)) return anyClock() ? waitShared(semaphore, kBetween, nullptr) : realWait(semaphore);
    return wait(semaphore, "sem_wait", nullptr);
}
int sem_timedwait(sem_t* semaphore, const timespec* until) {
    if (RANKSCOPE_NOT_OURS()) return realTimedWait(semaphore, until);
    if (isShared(semaphore) && !anyClock()) return realTimedWait(semaphore, until);
    return waitUntil(semaphore, CLOCK_REALTIME, until);
}
int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
    if (RANKSCOPE_NOT_OURS()) return realClockWait(semaphore, clock, until);
    if (isShared(semaphore) && !anyClock()) return realClockWait(semaphore, clock, until);
    return waitUntil(semaphore, clock, until);
}
int sem_trywait(sem_t* semaphore) noexcept {
    ThreadClock* clock = RANKSCOPE_NOT_OURS() ? nullptr : activeClock();
    if (!clock) return realTryWait(semaphore);
    if (isShared(semaphore)) return tryShared(semaphore);
    LocalProcess::instance().takeTurn(*clock);
    const int result = realTryWait(semaphore);
    if (result == 0) taken(semaphore, *clock);
    return result;
}
int sem_post(sem_t* semaphore) noexcept {
    if (RANKSCOPE_NOT_OURS()) return realPost(semaphore);
    if (isShared(semaphore)) return anyClock() ? postShared(semaphore) : realPost(semaphore);
    ThreadClock* clock = activeClock();
    if (clock) {
        LocalProcess::instance().takeTurn(*clock);
        uses().post(semaphore, clock);
        if (anybodyWaits() || LocalProcess::instance().severalAct()) leaveStamp(semaphore, clock->ns);
    }
    const int result = realPost(semaphore);
    wakeFirst(semaphore, clockNs(clock));
    return result;
}
int sem_destroy(sem_t* semaphore) noexcept {
    if (isShared(semaphore))
        forgetShared(semaphore);
    else
        uses().forget(semaphore);
    return realDestroy(semaphore);
}
int sem_close(sem_t* semaphore) noexcept {
    forgetShared(semaphore);
    return realClose(semaphore);
}

}  // extern "C"
