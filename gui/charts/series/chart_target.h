// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// From `beginNs` to `endNs`, but not before. Times of a damaged file are cut to where sums and differences of them do not overflow.
inline TimeRange soundRange(int64_t beginNs, int64_t endNs) {
    constexpr int64_t kFarthest = INT64_MAX / 8;
    const int64_t begin = std::clamp(beginNs, -kFarthest, kFarthest);
    return {begin, std::clamp(endNs, begin, kFarthest)};
}

/// As above, of something that begins and lasts.
inline TimeRange soundStretch(int64_t startNs, int64_t durNs) {
    constexpr int64_t kFarthest = INT64_MAX / 8;
    const int64_t begin = std::clamp(startNs, -kFarthest, kFarthest);
    return soundRange(begin, begin + std::clamp<int64_t>(durNs, 0, kFarthest));
}

/// Where in the timeline a point or cell of a chart comes from: an event, or a stretch of time when there is none.
struct ChartTarget {
    EventTable table = EventTable::none;
    int64_t rowId = 0;
    int32_t rank = -1;
    TimeRange range;   ///< to show while the event is not loaded; empty: unknown

    bool valid() const noexcept { return rank >= 0; }
};

}  // namespace rankscope::gui
