// SPDX-License-Identifier: Apache-2.0
// Threads begin where the one is that makes them, and who joins one goes on where it ended.
#include <errno.h>
#include <pthread.h>

#include <algorithm>
#include <new>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/sleeps.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> realCreate("pthread_create");
RealCall<int (*)(pthread_t, void**)> realJoin("pthread_join"), realTryJoin("pthread_tryjoin_np");
RealCall<int (*)(pthread_t, void**, clockid_t, const timespec*)> realClockJoin("pthread_clockjoin_np");
RealCall<int (*)(pthread_t, void**, const timespec*)> realTimedJoin("pthread_timedjoin_np");

const void* keyOf(pthread_t thread) {
    return reinterpret_cast<const void*>(thread);
}

void threadEnds(int64_t ns) {
    const void* key = keyOf(pthread_self());
    if (ns != kNoClock) leaveStamp(key, ns);
    wakeAll(key, ns);
}

[[gnu::constructor]] void askForEnds() {
    LocalProcess::tellThreadEndsTo(threadEnds);
    pthread_atfork(nullptr, nullptr, [] {
        forgetWaitersAfterFork();
        forgetSemaphoresAfterFork();
        forgetMeetingsAfterFork();
    });
}

struct Birth {
    void* (*function)(void*);
    void* argument;
    HostThread* place;
};

void* begin(void* given) {
    auto* birth = static_cast<Birth*>(given);
    const Birth mine = *birth;
    delete birth;
    LocalProcess::instance().adoptThread(mine.place);
    return mine.function(mine.argument);
}

/// Threads made by the profiler, or inside a call of ours, are not the job's; those of computing libraries only ever
/// compute, and are blocked in ways of their own.
bool belongsToJob(const void* returnAddress, void* (*function)(void*)) {
    if (isInsideCall() || callerAt(returnAddress) == Caller::profiler) return false;
    return !isComputingLibrary(returnAddress) && !isComputingLibrary(reinterpret_cast<const void*>(function));
}

// Between its last instruction and its end as the system sees it, a thread has told where it ended. A stamp that stands
// longer is that of an earlier thread of the same name.
constexpr int64_t kEndingNs = 50'000'000;

template <typename Join>
int join(pthread_t thread, void** value, Join realCall) {
    ThreadClock* clock = activeClock();
    if (!clock) return realCall();
    const void* key = keyOf(thread);
    Waiter waiter(key, clock, ParkKind::message);
    int result = realTryJoin(thread, value);
    if (result == EBUSY && stampOf(key) != kNoClock) {
        const Deadline deadline = deadlineIn(kEndingNs);
        result = realClockJoin(thread, value, deadline.clock, &deadline.at);
    }
    if (result == EBUSY || result == ETIMEDOUT) {
        waiter.leaveBounds("pthread_join");
        result = realCall();
        waiter.resume();
    }
    if (result != 0) return result;
    clock->ns = std::max(clock->ns, stampOf(key));
    LocalProcess::instance().publish(*clock);
    forgetStamp(key);
    return 0;
}

}  // namespace
}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
    ThreadClock* clock = activeClock();
    if (!clock || !belongsToJob(__builtin_return_address(0), function))
        return realCreate(thread, attributes, function, argument);
    LocalProcess& process = LocalProcess::instance();
    auto* birth = new (std::nothrow) Birth{function, argument, process.makeThread(clock->ns)};
    if (!birth) return EAGAIN;
    HostThread* place = birth->place;
    const int result = realCreate(thread, attributes, begin, birth);
    if (result != 0) {
        process.discardThread(place);
        delete birth;
    }
    return result;
}

int pthread_join(pthread_t thread, void** value) {
    if (callerAt(__builtin_return_address(0)) == Caller::profiler) return realJoin(thread, value);
    return join(thread, value, [&] { return realJoin(thread, value); });
}
int pthread_tryjoin_np(pthread_t thread, void** value) noexcept {
    const int result = realTryJoin(thread, value);
    ThreadClock* clock = activeClock();
    if (result == 0 && clock) {
        clock->ns = std::max(clock->ns, stampOf(keyOf(thread)));
        LocalProcess::instance().publish(*clock);
        forgetStamp(keyOf(thread));
    }
    return result;
}
int pthread_timedjoin_np(pthread_t thread, void** value, const timespec* until) {
    return join(thread, value, [&] { return realTimedJoin(thread, value, until); });
}
int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t clock, const timespec* until) {
    return join(thread, value, [&] { return realClockJoin(thread, value, clock, until); });
}

}  // extern "C"
