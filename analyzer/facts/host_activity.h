// SPDX-License-Identifier: Apache-2.0
// Tells what a rank's host did: in what it was, where it stood still, and what it asked of the allocator and the copy
// engine.
#pragma once

#include <map>
#include <vector>

#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/rank_summary.h"

namespace rankscope::facts {

/// Tells what a rank's host was in, innermost: operations of an imported trace, the program's ranges, and long calls of
/// CUDA, nested as they are on their threads.
class HostActivity {
  public:
    explicit HostActivity(const RankEvents& events);

    /// Returns what the thread was in longest; where it was in nothing for more than half of the time, whichever thread
    /// was in one thing longest counts.
    HostDoing mostly(int32_t threadId, int64_t fromNs, int64_t toNs) const;

    enum class Kind : uint8_t { operation, range, call };
    struct Entry {
        int64_t startNs = 0;
        int64_t endNs = 0;
        int64_t ownNs = 0;     // in nothing else of this list
        int64_t usualNs = -1;  // of an operation; -1 unknown
        int64_t id = 0;        // row of nvtx (operations) or api_call; 0 ranges
        int32_t nameId = 0;
        int32_t around = -1;  // index in its thread of the entry around it; -1 none
        Kind kind = Kind::operation;
    };
    /// Returns the entries by thread; those of a thread by start, the outer one first.
    const std::map<int32_t, std::vector<Entry>>& threads() const { return m_threads; }

    static constexpr int64_t kLongCallNs = 100'000;  // shorter calls are the pace of launching

  private:
    static HostDoing mostlyOf(const std::vector<Entry>& entries, int64_t fromNs, int64_t toNs);
    std::map<int32_t, std::vector<Entry>> m_threads;
};

struct PauseThresholds {
    static constexpr double kFactor = 20;  // x the median of the same name: no load of the same work varies so much
    static constexpr int64_t kShortestNs = 3'000'000;  // Linux leaves a core to another process for that long at least;
                                                       // shorter ones are page faults, locks, interrupts
    static constexpr int64_t kLongestUsualNs = 500'000;  // what usually takes longer does real work, which may vary
    static constexpr size_t kFewestForMedian = 5;        // calls of one name
};

/// Finds where the host stood still inside operations and calls that usually take microseconds; by start. One such call
/// may have its reason (a first use, a full queue, a page fault); many different ones have none in common but the core
/// that the process did not get. Left out are calls that may wait for the device (synchronisation, allocation, blocking
/// copies; submissions while the device is busy, as its queue may be full), and the first of each name, which loads and
/// initialises.
std::vector<HostPause> hostPauses(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts);

/// Sets pausedNs of each stall. Both are sorted by start.
void measurePauses(const std::vector<HostPause>& pauses, std::vector<HostStall>& stalls);

/// Counts allocator calls and host-device copies of each analysed step, by step; steps with neither are left out.
std::vector<HostUse> hostUse(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts);

}  // namespace rankscope::facts
