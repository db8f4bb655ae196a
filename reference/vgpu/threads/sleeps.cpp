// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/threads/sleeps.h"

#include <errno.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

#include "reference/vgpu/device/seconds.h"
#include "reference/vgpu/threads/real_calls.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<int (*)(clockid_t, timespec*)> realGetTime("clock_gettime");
RealCall<int (*)(timeval*, void*)> realGetTimeOfDay("gettimeofday");
RealCall<int (*)(const timespec*, timespec*)> realSleep("nanosleep");
RealCall<int (*)(clockid_t, int, const timespec*, timespec*)> realClockSleep("clock_nanosleep");
RealCall<int (*)(useconds_t)> realMicrosleep("usleep");
RealCall<unsigned (*)(unsigned)> realSecondsSleep("sleep");

// A deadline further from the last reading than that was made in another way.
constexpr int64_t kLongestNs = 366 * 24 * 3600 * kNsPerS;

struct Reading {
    int64_t ns = 0;
    int64_t virtualNs = kNoClock;  ///< what the thread's own clock showed
};
// Real time and the monotonic clock: whatever else there is, nobody waits by it.
[[gnu::tls_model("initial-exec")]] thread_local Reading t_last[2];

int64_t inNs(const timespec& time) {
    return time.tv_sec * kNsPerS + time.tv_nsec;
}

void keepReading(clockid_t which, int64_t ns) {
    t_last[which] = {ns, clockNs(LocalProcess::clockIfAny())};
}

/// Passes on the virtual clock at once: the thread does nothing before. It sleeps all the same, since it may wait for
/// somebody who knows no other clock.
void passes(int64_t ns) {
    ThreadClock* clock = activeClock();
    if (!clock || ns <= 0 || !LocalProcess::instance().isUnderWay()) return;
    clock->ns += ns;
    LocalProcess::instance().publish(*clock);
}

}  // namespace

Deadline deadlineAt(clockid_t clock, const timespec& at) {
    Deadline deadline{clock, at, 0};
    const bool isKept = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    int64_t from = isKept ? t_last[clock].ns : 0;
    if (from == 0 || inNs(at) - from > kLongestNs) {
        timespec now;
        realGetTime(clock, &now);
        from = inNs(now);
    }
    // A wait that goes on after it was interrupted is shorter by what has passed on the thread's clock meanwhile.
    const ThreadClock* own = LocalProcess::clockIfAny();
    const int64_t passedNs =
        own && isKept && t_last[clock].virtualNs != kNoClock ? own->ns - t_last[clock].virtualNs : 0;
    deadline.lengthNs = std::max<int64_t>(0, inNs(at) - from - passedNs);
    return deadline;
}

Deadline deadlineIn(int64_t ns) {
    Deadline deadline;
    realGetTime(CLOCK_MONOTONIC, &deadline.at);
    const int64_t end = inNs(deadline.at) + ns;
    deadline.at = {end / kNsPerS, end % kNsPerS};
    deadline.lengthNs = ns;
    return deadline;
}

int64_t leftNs(const Deadline& deadline) {
    timespec now;
    realGetTime(deadline.clock, &now);
    return inNs(deadline.at) - inNs(now);
}

}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const int result = realGetTime(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) &&
        callerAt(__builtin_return_address(0)) != Caller::profiler)
        keepReading(clock, inNs(*time));
    return result;
}

int gettimeofday(timeval* time, void* zone) noexcept {
    const int result = realGetTimeOfDay(time, zone);
    if (result == 0) keepReading(CLOCK_REALTIME, time->tv_sec * kNsPerS + time->tv_usec * 1000);
    return result;
}

int nanosleep(const timespec* time, timespec* remaining) {
    passes(inNs(*time));
    const SleepingOut sleeping;
    return realSleep(time, remaining);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* remaining) {
    if (activeClock()) passes(flags & TIMER_ABSTIME ? deadlineAt(clock, *time).lengthNs : inNs(*time));
    const SleepingOut sleeping;
    return realClockSleep(clock, flags, time, remaining);
}

int usleep(useconds_t us) {
    passes(us * int64_t{1000});
    const SleepingOut sleeping;
    return realMicrosleep(us);
}

unsigned sleep(unsigned seconds) {
    passes(seconds * kNsPerS);
    const SleepingOut sleeping;
    return realSecondsSleep(seconds);
}

}  // extern "C"
