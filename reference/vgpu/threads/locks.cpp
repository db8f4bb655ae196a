// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/threads/locks.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(pthread_mutex_t*)> realLock("pthread_mutex_lock"), realTryLock("pthread_mutex_trylock"),
    realUnlock("pthread_mutex_unlock"), realDestroy("pthread_mutex_destroy");
RealCall<int (*)(pthread_mutex_t*, const timespec*)> realTimedLock("pthread_mutex_timedlock");
RealCall<int (*)(pthread_mutex_t*, clockid_t, const timespec*)> realClockLock("pthread_mutex_clocklock");
RealCall<int (*)(pthread_rwlock_t*)> realReadLock("pthread_rwlock_rdlock"), realTryReadLock("pthread_rwlock_tryrdlock"),
    realWriteLock("pthread_rwlock_wrlock"), realTryWriteLock("pthread_rwlock_trywrlock"),
    realRwUnlock("pthread_rwlock_unlock");

// glibc's bit of pthread_mutex_t for mutexes between processes (its PTHREAD_MUTEX_PSHARED_BIT): their waiters are
// elsewhere.
constexpr int kBetweenProcesses = 128;

thread_local int t_heldByInterpreter = 0;  // how many of its mutexes

void goOnFrom(ThreadClock& clock, int64_t ns) {
    if (ns <= clock.ns) return;
    clock.ns = ns;
    LocalProcess::instance().publish(clock);
}

/// Takes a lock that `tryIt` takes unless it is held (EBUSY), in the order of virtual time.
template <typename Try>
int take(const void* object, ThreadClock& clock, const char* call, int32_t owner, Try tryIt) {
    LocalProcess& process = LocalProcess::instance();
    for (bool wasHeld = false;;) {
        process.takeTurn(clock);
        int result = tryIt();
        if (result == EBUSY) {
            Waiter waiter(object, &clock, ParkKind::lock);
            result = tryIt();  // who gave it back meanwhile saw nobody wait
            if (result == EBUSY) waiter.block(call, nullptr, owner);
            wasHeld = true;
        }
        if (result == EBUSY) continue;
        if (wasHeld || process.severalAct()) goOnFrom(clock, stampOf(object));
        return result;
    }
}

/// Before a lock is given back, which also has its turn: who was to try it before has tried. Its next owner goes on no
/// earlier than now.
void prepareRelease(const void* object) {
    ThreadClock* clock = activeClock();
    if (!clock) return;
    LocalProcess& process = LocalProcess::instance();
    process.takeTurn(*clock);
    if (anybodyWaits() || process.severalAct()) leaveStamp(object, clock->ns);
}

void wakeThoseWaiting(const void* object) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (anybodyWaits()) wakeAll(object, clockNs(activeClock()));
}

/// The interpreter locks its mutexes for a moment only, above all to take its global lock or to give it up. A thread
/// that gave it up and wants it back at once must not be quicker than one that was woken for it and whose clock is
/// earlier. Only with the first of several that a thread locks: who waited for its turn with one of them would be
/// waited for, by the system alone, by whoever is to come first.
void waitForInterpretersTurn() {
    if (ThreadClock* clock = activeClock()) LocalProcess::instance().takeTurn(*clock);
}

}  // namespace

int lockMutex(pthread_mutex_t* mutex) {
    ThreadClock* clock = activeClock();
    if (!clock || mutex->__data.__kind & kBetweenProcesses) return realLock(mutex);
    const int32_t owner = mutex->__data.__owner;
    if (owner == clock->tid) return realLock(mutex);  // recursive, or an error
    return take(mutex, *clock, "pthread_mutex_lock", owner, [&] { return realTryLock(mutex); });
}

int unlockMutex(pthread_mutex_t* mutex) {
    prepareRelease(mutex);
    const int result = realUnlock(mutex);
    wakeThoseWaiting(mutex);
    return result;
}

}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

#define RANKSCOPE_NOT_OURS() (callerAt(__builtin_return_address(0)) != Caller::program)

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    const Caller caller = callerAt(__builtin_return_address(0));
    if (caller == Caller::interpreter && t_heldByInterpreter++ == 0) waitForInterpretersTurn();
    return caller == Caller::program ? lockMutex(mutex) : realLock(mutex);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    const Caller caller = callerAt(__builtin_return_address(0));
    if (caller == Caller::interpreter && t_heldByInterpreter > 0) t_heldByInterpreter--;
    return caller == Caller::program ? unlockMutex(mutex) : realUnlock(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
    ThreadClock* clock = RANKSCOPE_NOT_OURS() ? nullptr : activeClock();
    if (!clock || !LocalProcess::instance().severalAct()) return realTryLock(mutex);
    LocalProcess& process = LocalProcess::instance();
    process.takeTurn(*clock);
    const int result = realTryLock(mutex);
    if (result == EBUSY) {
        clock->ns += 100;  // a thread that tries again and again must not stand still for the others
        process.publish(*clock);
    } else {
        goOnFrom(*clock, stampOf(mutex));
    }
    return result;
}
int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
    if (activeClock()) forgetStamp(mutex);
    return realDestroy(mutex);
}
/// The time-outs of locks guard against errors: such a wait has no end on the virtual clock.
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
    if (!RANKSCOPE_NOT_OURS() && activeClock()) return lockMutex(mutex);
    return realTimedLock(mutex, until);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t which, const timespec* until) noexcept {
    if (!RANKSCOPE_NOT_OURS() && activeClock()) return lockMutex(mutex);
    return realClockLock(mutex, which, until);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
    ThreadClock* clock = RANKSCOPE_NOT_OURS() ? nullptr : activeClock();
    if (!clock || lock->__data.__shared) return realReadLock(lock);
    return take(lock, *clock, "pthread_rwlock_rdlock", 0, [&] { return realTryReadLock(lock); });
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
    ThreadClock* clock = RANKSCOPE_NOT_OURS() ? nullptr : activeClock();
    if (!clock || lock->__data.__shared) return realWriteLock(lock);
    return take(lock, *clock, "pthread_rwlock_wrlock", 0, [&] { return realTryWriteLock(lock); });
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
    if (RANKSCOPE_NOT_OURS()) return realRwUnlock(lock);
    prepareRelease(lock);
    const int result = realRwUnlock(lock);
    wakeThoseWaiting(lock);
    return result;
}

}  // extern "C"
