// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/threads/waiters.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/stall_watch.h"
#include "reference/vgpu/threads/standstill.h"

namespace rankscope::vgpu::threads {
namespace {

constexpr size_t kBuckets = 256;
constexpr size_t kStampsPerBucket = 16;
// A thread in the bounds looks after the job so often while it is blocked: who died, and whether all stand still.
constexpr int kLookMs = 250;
// A timed wait whose real time is over, while virtual time still runs, looks so often whether it does.
constexpr int kStillMs = 100;
// And so often at a word that another process may change.
constexpr int kWordMs = 20;

std::atomic<uint32_t> g_waiters{0};
std::atomic<uint64_t> g_arrivals{0};

struct Stamp {
    const void* object;
    int64_t ns;
};

struct Bucket {
    std::atomic_flag held;
    Waiter* first;
    Stamp stamps[kStampsPerBucket];
};
Bucket g_buckets[kBuckets];

class Hold {
  public:
    explicit Hold(Bucket& bucket) : m_bucket(bucket) {
        while (m_bucket.held.test_and_set(std::memory_order_acquire)) sched_yield();
    }
    ~Hold() { m_bucket.held.clear(std::memory_order_release); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

  private:
    Bucket& m_bucket;
};

Bucket& bucketFor(const void* object) {
    return g_buckets[(reinterpret_cast<uintptr_t>(object) >> 3) * 0x9E3779B97F4A7C15ull >> 56];
}

timespec after(int64_t ms) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t ns = now.tv_nsec + ms % 1000 * 1'000'000;
    return {now.tv_sec + ms / 1000 + ns / 1'000'000'000, ns % 1'000'000'000};
}

bool earlier(const timespec& a, const timespec& b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

bool hasPassed(const Deadline& deadline) {
    timespec now;
    clock_gettime(deadline.clock, &now);
    return !earlier(now, deadline.at);
}

/// False when `until` has passed.
bool futexWaitUntil(std::atomic<uint32_t>& word, uint32_t value, clockid_t clock, const timespec* until) {
    const int realtime = clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
    const int before = errno;
    const long result = syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_BITSET | realtime, value,
                                until, nullptr, FUTEX_BITSET_MATCH_ANY);
    const bool timedOut = result != 0 && errno == ETIMEDOUT;
    errno = before;
    return !timedOut;
}

}  // namespace

SleepingOut::SleepingOut() : m_thread(nullptr) {
    if (const ThreadClock* clock = anyClock()) m_thread = clock->shared;
    if (m_thread) m_thread->sleepsOut.store(1, std::memory_order_release);
}

SleepingOut::~SleepingOut() {
    if (m_thread) m_thread->sleepsOut.store(0, std::memory_order_release);
}

void sleepOut(const Deadline& deadline) {
    const SleepingOut sleeping;
    const int before = errno;
    while (clock_nanosleep(deadline.clock, TIMER_ABSTIME, &deadline.at, nullptr) == EINTR) {
    }
    errno = before;
}

class WaiterQueue {
  public:
    static void add(Waiter& waiter) {
        Bucket& bucket = bucketFor(waiter.m_object);
        const Hold hold(bucket);
        waiter.m_arrival = g_arrivals.fetch_add(1);
        waiter.m_next = bucket.first;
        if (bucket.first) bucket.first->m_previous = &waiter;
        bucket.first = &waiter;
        waiter.m_queued = true;
        g_waiters.fetch_add(1);
    }
    static void remove(Waiter& waiter) {
        Bucket& bucket = bucketFor(waiter.m_object);
        const Hold hold(bucket);
        unlink(bucket, waiter);
    }
    static Waiter* first(Bucket& bucket, const void* object) {
        Waiter* best = nullptr;
        for (Waiter* waiter = bucket.first; waiter; waiter = waiter->m_next)
            if (waiter->m_object == object && (!best || precedes(*waiter, *best))) best = waiter;
        return best;
    }
    /// The bucket is held: the waiter cannot leave before.
    static void wake(Bucket& bucket, Waiter& waiter, int64_t ns) {
        unlink(bucket, waiter);
        waiter.m_wakeNs = ns;
        if (waiter.m_clock) {
            if (waiter.m_kind == ParkKind::lock && ns != kNoClock) waiter.m_wakeNs = waiter.m_clock->shared->boundNs;
            LocalProcess::instance().wake(waiter.m_clock->shared, waiter.m_wakeNs, waiter.m_woken);
        } else {
            if (ns != kNoClock) waiter.m_given = LocalProcess::instance().makeThread(ns);
            waiter.m_woken.store(1, std::memory_order_release);
        }
        std::atomic<uint32_t>& futex = waiter.m_clock ? waiter.m_clock->shared->futex : waiter.m_futex;
        futex.fetch_add(1, std::memory_order_release);
        futexWake(futex, 1);
    }
    static void forgetAll() {
        for (Bucket& bucket : g_buckets) {
            bucket.first = nullptr;
            bucket.held.clear();
        }
        g_waiters = 0;
    }

  private:
    static void unlink(Bucket& bucket, Waiter& waiter) {
        if (!waiter.m_queued) return;
        waiter.m_queued = false;
        if (waiter.m_previous)
            waiter.m_previous->m_next = waiter.m_next;
        else
            bucket.first = waiter.m_next;
        if (waiter.m_next) waiter.m_next->m_previous = waiter.m_previous;
        g_waiters.fetch_sub(1);
    }
    /// Threads without a clock come last, in the order in which they came.
    static bool precedes(const Waiter& a, const Waiter& b) {
        if ((a.m_clock == nullptr) != (b.m_clock == nullptr)) return a.m_clock != nullptr;
        if (!a.m_clock) return a.m_arrival < b.m_arrival;
        if (a.m_clock->ns != b.m_clock->ns) return a.m_clock->ns < b.m_clock->ns;
        return a.m_clock->shared->number < b.m_clock->shared->number;
    }
};

Waiter::Waiter(const void* object, ThreadClock* clock, ParkKind kind) : m_object(object), m_clock(clock), m_kind(kind) {
    WaiterQueue::add(*this);
}

Waiter::~Waiter() {
    WaiterQueue::remove(*this);  // also waits until who wakes it is through with it
}

bool Waiter::block(const char* call, const Deadline* deadline, int32_t lockOwner) {
    if (!m_clock) {
        const bool woken = sleep(deadline, 0);
        takeClock();
        return woken;
    }
    LocalProcess& process = LocalProcess::instance();
    const int64_t deadlineNs = deadline ? m_clock->ns + deadline->lengthNs : kForever;
    process.park(*m_clock, m_kind, call, deadlineNs, lockOwner, m_woken);
    bool woken = sleep(deadline, lockOwner);
    const bool acts = m_clock->shared->hasActed;
    const auto& timedOut = m_clock->shared->timedOut;
    if (!woken && !timedOut.load() && acts) woken = !process.reachDeadline(*m_clock, deadlineNs, m_woken);
    const bool hasTimedOut = timedOut.load();
    if (hasTimedOut) woken = false;
    WaiterQueue::remove(*this);
    if (m_woken.load(std::memory_order_acquire)) woken = true;
    if (acts || hasTimedOut || (woken && m_wakeNs != kNoClock))
        process.unpark(*m_clock, m_wakeNs);
    else
        process.observe(*m_clock);
    if (!woken && deadline) sleepOut(*deadline);
    return woken;
}

bool Waiter::blockForReal(const char* call, const Deadline& deadline) {
    leaveBounds(call);
    std::atomic<uint32_t>& futex = m_clock->shared->futex;
    for (;;) {
        const uint32_t before = futex.load(std::memory_order_acquire);
        if (m_woken.load(std::memory_order_acquire) || hasPassed(deadline)) break;
        futexWaitUntil(futex, before, deadline.clock, &deadline.at);
    }
    resume();
    return m_woken.load(std::memory_order_acquire);
}

void Waiter::leaveBounds(const char* call) {
    if (m_clock) LocalProcess::instance().park(*m_clock, m_kind, call, kForever, 0, m_woken);
}

void Waiter::resume() {
    WaiterQueue::remove(*this);
    if (m_clock)
        LocalProcess::instance().unpark(*m_clock, m_wakeNs);
    else
        takeClock();
}

/// False when the deadline came first: on the virtual clock, or on the real one while the virtual one stands still.
bool Waiter::sleep(const Deadline* deadline, int32_t lockOwner) {
    if (!m_clock) return sleepWithoutClock(deadline);
    HostThread& shared = *m_clock->shared;
    LocalProcess& process = LocalProcess::instance();
    StallWatch watch(process.arena(), process.index());
    for (;;) {
        const int lookMs = m_word || process.anyEnds() ? kWordMs : kLookMs;
        const uint32_t before = shared.futex.load(std::memory_order_acquire);
        if (m_woken.load(std::memory_order_acquire)) return true;
        if (shared.timedOut.load(std::memory_order_acquire)) return false;
        timespec look = after(lookMs);
        if (deadline && hasPassed(*deadline)) {
            if (Standstill::ofThisThread().lasts()) return m_woken.load(std::memory_order_acquire);
            look = after(kStillMs);
        } else if (deadline && deadline->clock == CLOCK_MONOTONIC && earlier(deadline->at, look)) {
            look = deadline->at;
        }
        if (futexWaitUntil(shared.futex, before, CLOCK_MONOTONIC, &look)) continue;
        if (m_word && __atomic_load_n(m_word, __ATOMIC_SEQ_CST) != m_value) return true;
        process.mayLeave(*m_clock, lockOwner);
        process.forgetEnded(false);
        watch.lookWhileBlocked(lookMs);
    }
}

bool Waiter::sleepWithoutClock(const Deadline* deadline) {
    while (!m_woken.load(std::memory_order_acquire)) {
        if (deadline && hasPassed(*deadline)) return false;
        const timespec look = after(kWordMs);
        if (m_word)
            futexWaitUntil(m_futex, 0, CLOCK_MONOTONIC,
                           deadline && earlier(deadline->at, look) ? &deadline->at : &look);
        else
            futexWaitUntil(m_futex, 0, deadline ? deadline->clock : CLOCK_MONOTONIC,
                           deadline ? &deadline->at : nullptr);
        if (m_word && __atomic_load_n(m_word, __ATOMIC_SEQ_CST) != m_value) return true;
    }
    return true;
}

/// A thread that had no clock was woken by one that has: it begins where that one is.
void Waiter::takeClock() {
    WaiterQueue::remove(*this);
    if (m_given) LocalProcess::instance().adoptThread(m_given);
    m_given = nullptr;
}

bool wakeFirst(const void* object, int64_t ns) {
    if (!anybodyWaits()) return false;
    Bucket& bucket = bucketFor(object);
    const Hold hold(bucket);
    Waiter* waiter = WaiterQueue::first(bucket, object);
    if (waiter) WaiterQueue::wake(bucket, *waiter, ns);
    return waiter != nullptr;
}

void wakeAll(const void* object, int64_t ns) {
    while (wakeFirst(object, ns)) {
    }
}

bool anybodyWaits() {
    return g_waiters.load() != 0;
}

void leaveStamp(const void* object, int64_t ns) {
    Bucket& bucket = bucketFor(object);
    const Hold hold(bucket);
    for (Stamp& stamp : bucket.stamps) {
        if (stamp.object != object) continue;
        stamp.ns = std::max(stamp.ns, ns);
        return;
    }
    Stamp& oldest = *std::min_element(std::begin(bucket.stamps), std::end(bucket.stamps),
                                      [](const Stamp& a, const Stamp& b) { return a.ns < b.ns; });
    oldest = {object, ns};
}

int64_t stampOf(const void* object) {
    Bucket& bucket = bucketFor(object);
    const Hold hold(bucket);
    for (const Stamp& stamp : bucket.stamps)
        if (stamp.object == object) return stamp.ns;
    return kNoClock;
}

void forgetStamp(const void* object) {
    Bucket& bucket = bucketFor(object);
    const Hold hold(bucket);
    for (Stamp& stamp : bucket.stamps)
        if (stamp.object == object) stamp = {};
}

ThreadClock* anyClock() {
    return DataPlane::isInEffects() ? nullptr : LocalProcess::clockIfAny();
}

ThreadClock* activeClock() {
    return DataPlane::isInEffects() ? nullptr : LocalProcess::clockInBounds();
}

int64_t clockNs(const ThreadClock* clock) {
    return clock ? clock->ns : kNoClock;
}

void forgetWaitersAfterFork() {
    WaiterQueue::forgetAll();
}

}  // namespace rankscope::vgpu::threads
