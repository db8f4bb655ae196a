// SPDX-License-Identifier: Apache-2.0
// Waits on a word of memory, which libraries ask the system for by syscall(): std::future, std::counting_semaphore,
// std::latch and the waits of std::atomic are made of them.
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "reference/vgpu/threads/real_calls.h"
#include "reference/vgpu/threads/sleeps.h"
#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {
namespace {

RealCall<long (*)(long, ...)> realSystemCall("syscall");

struct FutexCall {
    uint32_t* word;
    int operation;
    uint32_t value;
    const timespec* time;
    uint32_t bits;
    bool isPrivate() const { return operation & FUTEX_PRIVATE_FLAG; }
    int command() const { return operation & FUTEX_CMD_MASK; }
    bool isWait() const {
        return command() == FUTEX_WAIT || (command() == FUTEX_WAIT_BITSET && bits == FUTEX_BITSET_MATCH_ANY);
    }
    bool isWake() const {
        return command() == FUTEX_WAKE || (command() == FUTEX_WAKE_BITSET && bits == FUTEX_BITSET_MATCH_ANY);
    }
};

/// A plain wait is given a length, one with bits an end.
std::optional<Deadline> deadlineOf(const FutexCall& call) {
    if (!call.time) return std::nullopt;
    if (call.command() == FUTEX_WAIT) return deadlineIn(call.time->tv_sec * 1'000'000'000 + call.time->tv_nsec);
    return deadlineAt(call.operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, *call.time);
}

long wait(const FutexCall& call) {
    const std::optional<Deadline> deadline = deadlineOf(call);
    Waiter waiter(call.word, anyClock(), ParkKind::message);
    if (!call.isPrivate()) waiter.watch(call.word, call.value);
    if (__atomic_load_n(call.word, __ATOMIC_SEQ_CST) != call.value) {
        errno = EAGAIN;
        return -1;
    }
    if (waiter.block("futex", deadline ? &*deadline : nullptr)) return 0;
    errno = ETIMEDOUT;
    return -1;
}

/// Those that wait here first, in the order of their clocks; then whoever came to the system in another way.
long wake(const FutexCall& call) {
    ThreadClock* clock = activeClock();
    if (clock) LocalProcess::instance().takeTurn(*clock);
    const auto most = static_cast<int>(call.value);
    int woken = 0;
    while (woken < most && wakeFirst(call.word, clockNs(clock))) woken++;
    if (woken == most) return woken;
    const long others = realSystemCall(SYS_futex, call.word, call.operation, static_cast<long>(most - woken), nullptr,
                                       nullptr, static_cast<long>(call.bits));
    return others < 0 ? others : others + woken;
}

}  // namespace
}  // namespace rankscope::vgpu::threads

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::threads;

extern "C" long syscall(long number, ...) noexcept {
    va_list list;
    va_start(list, number);
    long given[6];
    for (long& argument : given) argument = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && callerAt(__builtin_return_address(0)) == Caller::program) {
        const FutexCall call{reinterpret_cast<uint32_t*>(given[0]), static_cast<int>(given[1]),
                             static_cast<uint32_t>(given[2]), reinterpret_cast<const timespec*>(given[3]),
                             static_cast<uint32_t>(given[5])};
        if (call.isWait()) return wait(call);
        if (call.isWake()) return wake(call);
    }
    return realSystemCall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
