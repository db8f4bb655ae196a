// SPDX-License-Identifier: Apache-2.0
// The clock by which a profiler in the job stamps what the host does (CUPTI's timestamp callback; PyTorch's counts the
// processor's ticks). It runs in real time, while everything that this library reports is in virtual time. It is read
// wherever a host clock is known, so that its stamps can be read as virtual time, too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "reference/vgpu/device/clock_marks.h"

namespace rankscope::vgpu {

struct ThreadClock;

class ProfilerClock {
  public:
    using Ticks = uint64_t (*)();
    /// Unix time of a stamp, in ns.
    using Converter = std::function<int64_t(uint64_t)>;

    static ProfilerClock& instance();

    /// The profiler's clock, from now on; what was marked of another one, or in a recording before, is forgotten.
    void use(Ticks ticks);
    /// Whether records are wanted: the marks end with the recording, and Unix time is that of its end.
    void setRecording(bool on) { m_isRecording.store(on, std::memory_order_relaxed); }

    /// The calling thread's clock stands there now.
    void mark(const ThreadClock& thread) {
        if (m_isRecording.load(std::memory_order_relaxed) && m_ticks.load(std::memory_order_acquire)) keep(thread);
    }
    /// Waits, in real time, until as much of it has passed as of virtual time: a profiler drops what ends later than
    /// its own clock says it stopped. No lock may be held.
    void keepPace();

    /// Takes the profiler's own stamps and those of CUPTI's records to the same Unix time: virtual time, laid so that
    /// the last mark keeps its real time, or, of a job's processes that record together, that of the first which asks:
    /// so theirs agree. Empty where nothing was marked: then nothing was recorded here either.
    Converter converter();

  private:
    void keep(const ThreadClock& thread);
    void add(int64_t virtualNs);  // m_mutex is held

    std::atomic<bool> m_isRecording{false};
    std::atomic<Ticks> m_ticks{nullptr};
    std::atomic<bool> m_mayBeAhead{false};
    std::mutex m_mutex;  // guards what follows
    std::shared_ptr<ClockMarks> m_marks = std::make_shared<ClockMarks>();
    uint64_t m_recordings = 0;  ///< so far, this one included
    int64_t m_lastRealNs = 0;
    int64_t m_aheadNs = 0;  ///< of real time, since virtual time was last behind it
};

}  // namespace rankscope::vgpu
