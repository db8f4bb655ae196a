// SPDX-License-Identifier: Apache-2.0
// Condition variables inside a process. Their waiters queue here and not in libc, so that a signal wakes the thread
// whose clock is the earliest. The interpreter's own are its global lock; what it hands over is the right to run, not a
// message.
#include <errno.h>
#include <pthread.h>

#include "reference/vgpu/threads/locks.h"
#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/sleeps.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

// libc has two of each: the first ones are from before conditions could be shared between processes.
constexpr const char* kVersion = "GLIBC_2.3.2";
RealCall<int (*)(pthread_cond_t*)> realSignal("pthread_cond_signal", kVersion),
    realBroadcast("pthread_cond_broadcast", kVersion);
RealCall<int (*)(pthread_cond_t*, pthread_mutex_t*)> realWait("pthread_cond_wait", kVersion);
RealCall<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)> realTimedWait("pthread_cond_timedwait", kVersion);
RealCall<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> realClockWait(
    "pthread_cond_clockwait");

// glibc's flags in pthread_cond_t::__wrefs: shared between processes; waits by the monotonic clock.
constexpr unsigned kShared = 1, kMonotonic = 2;

bool isShared(const pthread_cond_t* condition) {
    return condition->__data.__wrefs & kShared;
}

int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, const char* call, const Deadline* deadline) {
    Waiter waiter(condition, anyClock(), ParkKind::message);
    if (const int result = unlockMutex(mutex)) return result;
    const bool woken = waiter.block(call, deadline);
    const int result = lockMutex(mutex);
    return result ? result : woken ? 0 : ETIMEDOUT;
}

int waitUntil(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
    if (until->tv_nsec < 0 || until->tv_nsec >= 1'000'000'000) return EINVAL;
    const Deadline deadline = deadlineAt(clock, *until);
    return wait(condition, mutex, "pthread_cond_timedwait", &deadline);
}

// How long a thread that waits for the interpreter lets another one keep it, in real time. Python asks for it back
// after 5 ms, which a busy machine takes between any two instructions: who comes first would be the system's choice. A
// thread that gives it up by itself, as those do that wait for anything, is not held up by this; one that only ever
// looks at a flag that another one is to set, is.
constexpr int64_t kInterpreterNs = 200'000'000;

/// Of the interpreter: the thread waits for the right to run. It is in the bounds again before who gives that up goes
/// on.
template <typename Wait>
int waitForInterpreter(pthread_cond_t* condition, pthread_mutex_t* mutex, Wait realCall) {
    ThreadClock* clock = activeClock();
    if (!clock) return realCall();
    Waiter waiter(condition, clock, ParkKind::lock);
    pthread_mutex_unlock(mutex);
    const bool woken = waiter.blockForReal("the interpreter's lock", deadlineIn(kInterpreterNs));
    // Who woke it may come back at once, at an earlier clock. A thread whose time is over asks for the lock instead,
    // which whoever has it gives up for that alone.
    if (ThreadClock* active = woken ? activeClock() : nullptr) LocalProcess::instance().takeTurn(*active);
    pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

/// Those that wait here first, in the order of their clocks.
int wakeForInterpreter(pthread_cond_t* condition) {
    return wakeFirst(condition, clockNs(activeClock())) ? 0 : realSignal(condition);
}

int wake(pthread_cond_t* condition, void (*wakeThem)(const void*, int64_t)) {
    ThreadClock* clock = activeClock();
    if (clock) LocalProcess::instance().takeTurn(*clock);
    wakeThem(condition, clockNs(clock));
    return 0;
}

}  // namespace
}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" {

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    switch (callerAt(__builtin_return_address(0))) {
        case Caller::interpreter: {
            const int result = waitForInterpreter(condition, mutex, [&] { return realWait(condition, mutex); });
            return result == ETIMEDOUT ? 0 : result;  // a spurious wakeup: Python ends the process by any other answer
        }
        case Caller::profiler:
            return realWait(condition, mutex);
        default:
            return isShared(condition) ? realWait(condition, mutex)
                                       : wait(condition, mutex, "pthread_cond_wait", nullptr);
    }
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
    switch (callerAt(__builtin_return_address(0))) {
        case Caller::interpreter:
            return waitForInterpreter(condition, mutex, [&] { return realTimedWait(condition, mutex, until); });
        case Caller::profiler:
            return realTimedWait(condition, mutex, until);
        default:
            break;
    }
    if (isShared(condition)) return realTimedWait(condition, mutex, until);
    return waitUntil(condition, mutex, condition->__data.__wrefs & kMonotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME,
                     until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
    if (isShared(condition) || callerAt(__builtin_return_address(0)) != Caller::program)
        return realClockWait(condition, mutex, clock, until);
    return waitUntil(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
    const Caller caller = callerAt(__builtin_return_address(0));
    if (caller == Caller::interpreter) return wakeForInterpreter(condition);
    if (isShared(condition) || caller != Caller::program) return realSignal(condition);
    return wake(condition, [](const void* object, int64_t ns) { wakeFirst(object, ns); });
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
    const Caller caller = callerAt(__builtin_return_address(0));
    if (caller == Caller::interpreter) wakeAll(condition, clockNs(activeClock()));
    if (isShared(condition) || caller != Caller::program) return realBroadcast(condition);
    return wake(condition, wakeAll);
}

}  // extern "C"
