// SPDX-License-Identifier: Apache-2.0
// Threads that are blocked on something of their process, by its address: a condition variable, a lock, a thread.
//
// What is guaranteed, for threads that have a clock:
// - A blocked thread leaves the bounds at once and comes back in the very call that wakes it, at the clock of who wakes
// it, before
//   that one can go on. So no event that the woken thread could still influence has become final meanwhile.
// - Of several threads that wait for one object the one with the earliest clock is woken, and the earlier born of two
// equal ones.
// - Where several threads of a process are active, whatever hands something over (a lock, a signal, a post) happens in
// the order of
//   their clocks, since each waits for its turn (LocalProcess::takeTurn).
// - A timed wait ends when its time has passed on the virtual clock: a watchdog that looks each 100 ms does so each 100
// ms of the job's time.
//   The real clock ends it only where virtual time has stood still for a second, as while the job waits for somebody
//   outside. Real work of another thread or process, however long, ends no wait. A thread that has issued work then
//   goes on at the wait's end; one that has not only looks on (ThreadState::observing) and leaves its clock where it
//   was.
// What is not: a thread without a clock, or one that looks on, acts when the system lets it. Whom it wakes goes on at
// what the job has reached by then. Threads that share data without any call of libc are not seen: one that spins on a
// flag; and std::atomic's waits, std::counting_semaphore, std::latch and std::barrier wherever they need not block.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

#include "reference/vgpu/device/local_process.h"

namespace rankscope::vgpu::threads {

/// When a wait ends by itself: on the real clock, and the length as the thread asked for it.
struct Deadline {
    clockid_t clock = CLOCK_MONOTONIC;
    timespec at{};
    int64_t lengthNs = 0;
};

/// While it lives, the thread that made it sleeps on the real clock only: on its own it is where it will be then.
class SleepingOut {
  public:
    SleepingOut();
    ~SleepingOut();
    SleepingOut(const SleepingOut&) = delete;
    SleepingOut& operator=(const SleepingOut&) = delete;

  private:
    HostThread* m_thread;
};

/// A wait that is over on the virtual clock ends for the program when it is on the real one as well, since it will look
/// there. The thread is in the bounds meanwhile.
void sleepOut(const Deadline& deadline);

/// A blocked thread; lives on its stack.
class Waiter {
  public:
    /// Its clock may be null. From here on it can be woken. Who waits for a lock comes back at its own clock, which
    /// decides who of several gets it; it then goes on no earlier than the stamp of who gave it back.
    Waiter(const void* object, ThreadClock* clock, ParkKind kind);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// The word may be in memory that another process changes (libstdc++ marks none of its futexes as private): the
    /// wait also ends soon after that.
    void watch(const uint32_t* word, uint32_t value) { m_word = word, m_value = value; }
    /// Blocks until it is woken or the deadline, if any, is over. True if it was woken.
    bool block(const char* call, const Deadline* deadline, int32_t lockOwner = 0);
    /// For the interpreter's lock, which is waited for in real time. False if the deadline came first. Needs a clock.
    bool blockForReal(const char* call, const Deadline& deadline);
    /// Leaves the queue and the bounds without blocking here: something else blocks the thread until `resume`.
    void leaveBounds(const char* call);
    void resume();

  private:
    friend class WaiterQueue;
    bool sleep(const Deadline* deadline, int32_t lockOwner);
    bool sleepWithoutClock(const Deadline* deadline);
    void takeClock();

    const void* m_object;
    ThreadClock* m_clock;
    const ParkKind m_kind;
    HostThread* m_given = nullptr;  ///< a clock's place that who woke it has made
    Waiter *m_next = nullptr, *m_previous = nullptr;
    std::atomic<uint32_t> m_woken{0};
    std::atomic<uint32_t> m_futex{0};
    int64_t m_wakeNs = kNoClock;
    uint64_t m_arrival = 0;
    const uint32_t* m_word = nullptr;
    uint32_t m_value = 0;
    bool m_queued = false, m_parked = false;
};

/// `ns`: the clock of who wakes, or kNoClock. Wakes the first of those that wait for the object, or all of them.
bool wakeFirst(const void* object, int64_t ns);
void wakeAll(const void* object, int64_t ns);
/// True while anybody waits for anything: lets a lock be given back without a look at the queues.
bool anybodyWaits();

/// When something was last given away, by the object: its next owner goes on no earlier. kNoClock: nothing is known.
void leaveStamp(const void* object, int64_t ns);
int64_t stampOf(const void* object);
void forgetStamp(const void* object);

/// The calling thread's clock, if it has one; the same if it also counts now. Null in effects of operations, which any
/// thread may happen to carry out. `ns` of it, or kNoClock.
ThreadClock* anyClock();
ThreadClock* activeClock();
int64_t clockNs(const ThreadClock* clock);

void forgetWaitersAfterFork();
void forgetSemaphoresAfterFork();
void forgetMeetingsAfterFork();

}  // namespace rankscope::vgpu::threads
