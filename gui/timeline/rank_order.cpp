// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/rank_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rankscope::gui {
namespace {

double waitingShare(const ActivityView& rank, TimeRange time) {
    constexpr auto kWaiting = static_cast<size_t>(Activity::waiting);
    if (time.span() <= 0) return 0;
    // Closer than a bin the events are few.
    if (!rank.streams.empty() && time.span() < rank.bins->binNs())
        return static_cast<double>(activityIn(rank.streams, time)[kWaiting]) / static_cast<double>(time.span());
    return static_cast<double>(rank.bins->shares(time)[kWaiting]);
}

}  // namespace

std::vector<int32_t> ranksByWaiting(const LaneTree& lanes, TimeRange time) {
    std::vector<std::pair<double, int32_t>> waiting;
    for (const OutlineRank& rank : lanes.outline().ranks) {
        const ActivityView known = lanes.activity(rank.rank);
        waiting.emplace_back(known.bins ? waitingShare(known, time) : std::numeric_limits<double>::infinity(),
                             rank.rank);
    }
    std::ranges::sort(waiting);
    std::vector<int32_t> order;
    for (const auto& [share, rank] : waiting) order.push_back(rank);
    return order;
}

}  // namespace rankscope::gui
