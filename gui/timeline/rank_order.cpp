// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/rank_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rankscope::gui {
namespace {

double waitingShare(const RankTracks& tracks, TimeRange time) {
    constexpr auto kWaiting = static_cast<size_t>(Activity::waiting);
    if (time.span() <= 0) return 0;
    // Closer than a bin the events are few.
    if (tracks.activity.empty() || time.span() < tracks.activity.binNs())
        return static_cast<double>(activityIn(tracks.deviceTracks(), time)[kWaiting]) /
               static_cast<double>(time.span());
    return static_cast<double>(tracks.activity.shares(time)[kWaiting]);
}

}  // namespace

std::vector<int32_t> ranksByWaiting(const LaneTree& lanes, TimeRange time) {
    std::vector<std::pair<double, int32_t>> waiting;
    for (const OutlineRank& rank : lanes.outline().ranks) {
        const RankTracks* tracks = lanes.tracks(rank.rank);
        waiting.emplace_back(tracks ? waitingShare(*tracks, time) : std::numeric_limits<double>::infinity(), rank.rank);
    }
    std::ranges::sort(waiting);
    std::vector<int32_t> order;
    for (const auto& [share, rank] : waiting) order.push_back(rank);
    return order;
}

}  // namespace rankscope::gui
