// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "injector/record/capture_sink.h"
#include "injector/record/clock.h"
#include "injector/record/ring_file.h"

namespace rankscope::injector {

/// Moves records from the rings into the capture file. Sleeps between its rounds and never spins; a thread whose ring
/// is half full wakes it early. `periodic` runs about every 200 ms on the same thread (CUPTI's flush, the clock).
class WriterThread {
  public:
    using Periodic = void (*)();
    /// What the thread has others do, each on itself.
    struct Duties {
        Periodic periodic = nullptr;     ///< every kPeriodNs
        Periodic ringsAreCut = nullptr;  ///< what was in the rings at that moment is lost
        /// The process ends with this thread, its last one, and the main thread had left by the system call itself,
        /// with this status.
        void (*lastThreadEnds)(int32_t status) = nullptr;
    };

    constexpr WriterThread() = default;

    static constexpr int64_t kRoundNs = 50'000'000;
    static constexpr int64_t kPeriodNs = 200'000'000;
    /// Where a process that is killed takes its rings along: what it did last is what its hang or crash is told by.
    static constexpr int64_t kOwnMemoryRoundNs = 10'000'000;

    /// `roundNs`: how often the rings are emptied while they outlive the process, a part of the period or all of it.
    /// The thread runs when this returns.
    bool start(RingFile& rings, CaptureSink& sink, const Duties& duties, int64_t roundNs = kRoundNs) noexcept;

    /// Its number for the kernel; it takes no signals. 0: none.
    int32_t tid() const noexcept { return static_cast<int32_t>(m_tid.load(std::memory_order_acquire)); }

    /// Any thread, at any time; cheap when the writer is awake already.
    void wake() noexcept;

    /// Drains every ring on the calling thread. Safe beside the writer thread.
    void drainNow() noexcept;

    /// Ends the thread and waits until it is gone, at most two seconds: a job must not hang because of us.
    void stop() noexcept;

    /// Processor time the thread has taken.
    int64_t cpuNs() const noexcept { return m_cpuNs.load(std::memory_order_relaxed); }
    /// What one recorded call costs the job on this machine: two stamps and one push, measured here once; 0 unknown.
    int64_t recordCostNs() const noexcept { return m_recordCostNs.load(std::memory_order_relaxed); }
    void measureRecordCost(const Clock& clock) noexcept;

    /// In a forked child, where the thread does not exist.
    void abandon() noexcept;

  private:
    static void* entry(void* self) noexcept;
    void run() noexcept;
    void lookAtRings() noexcept;
    void tendRings() noexcept;

    RingFile* m_rings = nullptr;
    CaptureSink* m_sink = nullptr;
    Duties m_duties;
    int64_t m_roundNs = 0;
    Mutex m_consumer;
    uint64_t m_toldLost[RingFile::kMaxRings] = {};
    std::atomic<uint32_t> m_signal{0};
    std::atomic<bool> m_asleep{false};
    std::atomic<bool> m_stop{false};
    std::atomic<uint32_t> m_alive{0};
    std::atomic<uint32_t> m_tid{0};
    std::atomic<int64_t> m_cpuNs{0};
    std::atomic<int64_t> m_recordCostNs{0};
};

}  // namespace rankscope::injector
