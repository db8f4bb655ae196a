// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gui/timeline/rank_tracks.h"
#include "gui/timeline/sound_time.h"

namespace rankscope::gui {

/// Where in the timeline a point or cell of a chart comes from: an event, or a stretch of time when there is none.
struct ChartTarget {
    EventTable table = EventTable::none;
    int64_t rowId = 0;
    int32_t rank = -1;
    TimeRange range;  ///< to show while the event is not loaded; empty: unknown

    bool valid() const noexcept { return rank >= 0; }
};

}  // namespace rankscope::gui
