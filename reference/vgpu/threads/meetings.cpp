// SPDX-License-Identifier: Apache-2.0
// Threads that meet at a barrier, and what is done once by whoever comes first. std::promise tells its future by way of
// the latter.
#include <errno.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>

#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(pthread_barrier_t*, const pthread_barrierattr_t*, unsigned)> realBarrierInit("pthread_barrier_init");
RealCall<int (*)(pthread_barrier_t*)> realBarrierWait("pthread_barrier_wait"),
    realBarrierDestroy("pthread_barrier_destroy");
RealCall<int (*)(pthread_once_t*, void (*)())> realOnce("pthread_once");

// glibc's states of a pthread_once_t; a higher part counts forks.
constexpr int kOnceInProgress = 1, kOnceDone = 2;

struct Meeting {
    unsigned expected = 0, come = 0;
    int64_t latestNs = kNoClock;
};
std::mutex g_mutex;
std::unordered_map<const void*, Meeting>& meetings() {
    static auto* all = new std::unordered_map<const void*, Meeting>;
    return *all;
}

int arrive(pthread_barrier_t* barrier) {
    ThreadClock* clock = activeClock();
    if (clock) LocalProcess::instance().takeTurn(*clock);
    std::unique_lock lock(g_mutex);
    const auto found = meetings().find(barrier);
    if (found == meetings().end()) {
        lock.unlock();
        return realBarrierWait(barrier);
    }
    Meeting& meeting = found->second;
    meeting.latestNs = std::max(meeting.latestNs, clockNs(clock));
    if (++meeting.come == meeting.expected) {
        const int64_t ns = meeting.latestNs;
        meeting.come = 0;
        meeting.latestNs = kNoClock;
        lock.unlock();
        wakeAll(barrier, ns);
        if (clock) clock->ns = std::max(clock->ns, ns);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    Waiter waiter(barrier, anyClock(), ParkKind::message);
    lock.unlock();
    waiter.block("pthread_barrier_wait", nullptr);
    return 0;
}

}  // namespace

void forgetMeetingsAfterFork() {
    new (&g_mutex) std::mutex;
}

}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" {

int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes, unsigned count) noexcept {
    const int result = realBarrierInit(barrier, attributes, count);
    int sharing = PTHREAD_PROCESS_PRIVATE;
    if (attributes) pthread_barrierattr_getpshared(attributes, &sharing);
    if (result != 0 || sharing != PTHREAD_PROCESS_PRIVATE) return result;
    const std::lock_guard guard(g_mutex);
    meetings()[barrier] = {count};
    return 0;
}
int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
    return arrive(barrier);
}
int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
    {
        const std::lock_guard guard(g_mutex);
        meetings().erase(barrier);
    }
    return realBarrierDestroy(barrier);
}

int pthread_once(pthread_once_t* once, void (*function)()) {
    ThreadClock* clock = activeClock();
    const int state = __atomic_load_n(once, __ATOMIC_ACQUIRE);
    if (!clock || state & kOnceDone || callerAt(__builtin_return_address(0)) == Caller::profiler)
        return realOnce(once, function);
    LocalProcess::instance().takeTurn(*clock);
    if (!(__atomic_load_n(once, __ATOMIC_ACQUIRE) & kOnceInProgress)) return realOnce(once, function);
    Waiter waiter(once, clock, ParkKind::lock);
    waiter.leaveBounds("pthread_once");
    const int result = realOnce(once, function);
    waiter.resume();
    return result;
}

}  // extern "C"
