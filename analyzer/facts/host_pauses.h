// SPDX-License-Identifier: Apache-2.0
// Where a host stood still: inside operations and calls that usually take microseconds. One such call may have its
// reason (a first use, a full queue, a page fault); many different ones have none in common but the core that the
// process did not get.
#pragma once

#include <vector>

#include "analyzer/facts/rank_summary.h"

namespace rankscope::facts {

struct PauseThresholds {
    static constexpr double kFactor = 20;  // x the median of the same name: no load of the same work varies so much
    static constexpr int64_t kShortestNs = 3'000'000;  // Linux leaves a core to another process for that long at least;
                                                       // shorter ones are page faults, locks, interrupts
    static constexpr int64_t kLongestUsualNs = 500'000;  // what usually takes longer does real work, which may vary
    static constexpr size_t kFewestForMedian = 5;        // calls of one name
};

/// By start. Left out: calls that may wait for the device (synchronisation, allocation, blocking copies; submissions
/// while the device is busy, as its queue may be full), and the first of each name, which loads and initialises.
std::vector<HostPause> hostPauses(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts);

/// Sets pausedNs of each stall. Both are sorted by start.
void measurePauses(const std::vector<HostPause>& pauses, std::vector<HostStall>& stalls);

}  // namespace rankscope::facts
