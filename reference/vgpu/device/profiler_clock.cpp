// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/profiler_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/seconds.h"

namespace rankscope::vgpu {
namespace {

// Stamps of CUPTI's records lie around kEpochNs. A processor that counts 5 ticks a nanosecond takes five years to get
// half as far.
constexpr uint64_t kFirstRecordStamp = static_cast<uint64_t>(kEpochNs) / 2;

// Less is not worth a system call.
constexpr int64_t kShortestPauseNs = 50'000;

int64_t unixNs() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * kNsPerS + now.tv_nsec;
}

/// The job's shift of this recording, by the first process that comes to ask; no more than `mostNs`, beyond which
/// records would lie behind the end of the recording.
int64_t sharedShift(uint64_t recording, int64_t mostNs) {
    LocalProcess& process = LocalProcess::instance();
    if (!process.attached()) return mostNs;
    Arena& arena = process.arena();
    const SharedLock guard(arena.lock);
    if (arena.profiledRecordings < recording) {
        arena.profiledRecordings = recording;
        arena.profilerShiftNs = mostNs;
    }
    return arena.profiledRecordings == recording ? std::min(mostNs, arena.profilerShiftNs) : mostNs;
}

}  // namespace

ProfilerClock& ProfilerClock::instance() {
    static auto* clock = new ProfilerClock;  // never destroyed: threads still mark while the process ends
    return *clock;
}

void ProfilerClock::use(Ticks ticks) {
    const std::lock_guard guard(m_mutex);
    m_marks = std::make_shared<ClockMarks>();
    m_lastRealNs = m_aheadNs = 0;
    m_recordings++;
    m_mayBeAhead.store(false, std::memory_order_relaxed);
    m_ticks.store(ticks, std::memory_order_release);
}

void ProfilerClock::keep(const ThreadClock& thread) {
    const int64_t virtualNs = LocalProcess::instance().stamp(thread.ns);
    const std::lock_guard guard(m_mutex);
    add(virtualNs);
}

void ProfilerClock::add(int64_t virtualNs) {
    const int64_t before = m_marks->empty() ? virtualNs : m_marks->lastNs();
    m_marks->add(m_ticks.load(std::memory_order_relaxed)(), virtualNs);
    const int64_t realNs = unixNs();
    const int64_t passedNs = m_lastRealNs == 0 ? 0 : realNs - m_lastRealNs;
    m_aheadNs = std::max<int64_t>(0, m_aheadNs + m_marks->lastNs() - before - passedNs);
    m_mayBeAhead.store(m_aheadNs >= kShortestPauseNs, std::memory_order_relaxed);
    m_lastRealNs = realNs;
}

void ProfilerClock::keepPace() {
    if (!m_mayBeAhead.load(std::memory_order_relaxed)) return;
    int64_t aheadNs = 0;
    {
        const std::lock_guard guard(m_mutex);
        aheadNs = m_aheadNs;
    }
    timespec pause{aheadNs / kNsPerS, aheadNs % kNsPerS};
    // Not the call of libc, which would pass on the virtual clock.
    syscall(SYS_nanosleep, &pause, nullptr);
    const std::lock_guard guard(m_mutex);
    if (!m_marks->empty()) add(m_marks->lastNs());
}

ProfilerClock::Converter ProfilerClock::converter() {
    const std::lock_guard guard(m_mutex);
    if (m_marks->empty()) return {};
    // A copy: threads may mark on.
    const auto marks = std::make_shared<const ClockMarks>(*m_marks);
    const int64_t shiftNs = sharedShift(m_recordings, m_lastRealNs - marks->lastNs());
    return [marks, shiftNs](uint64_t stamp) {
        return shiftNs + (stamp >= kFirstRecordStamp ? static_cast<int64_t>(stamp) : marks->virtualAt(stamp));
    };
}

}  // namespace rankscope::vgpu
