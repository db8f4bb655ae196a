// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/curve.h"
#include "gui/timeline/track.h"

namespace rankscope::gui {

/// deviceRanges: NVTX ranges as the device ran them; idle: when the device stood still.
enum class LaneKind : uint8_t { steps, nvtx, hostCalls, deviceRanges, idle, stream, counter };

/// The table of trace.db an event's row id belongs to. nvtxOnDevice: an event is the row's of nvtx, at times of the
/// device.
enum class EventTable : uint8_t { kernel, memcpy, memset, nvtx, apiCall, ncclCall, step, nvtxOnDevice, idleGap, none };
/// Its name in trace.db; empty for none.
const char* tableName(EventTable table);

/// One line of the timeline: a track and what to call it. A stream's copies and kernels come from different tables, so
/// that they are tracks of their own in one lane.
struct Lane {
    LaneKind kind = LaneKind::stream;
    std::string label;  ///< "stream 7 compute"; unique in its rank
    struct Part {
        EventTable table = EventTable::none;
        Track track;
    };
    std::vector<Part> parts;
    Curve curve;  ///< of a counter; then there are no parts
};

/// Events that no lane has room for: nested too deeply, or of a stream or thread too many. They are counted and
/// exported, but not drawn.
struct UndrawnEvents {
    std::string lane;  ///< label of the lane above them; empty where there is none
    EventTable table = EventTable::none;
    int64_t firstRow = 0;
    std::vector<TrackEvent> events;  ///< in order of start; they may overlap
};

/// An event that was recorded with a negative duration; it is drawn as 0 ns.
struct NegativeDuration {
    EventTable table = EventTable::none;
    int64_t row = 0;
    int64_t durNs = 0;
};

/// Everything the timeline shows of a rank. Immutable once loaded, shared by the threads that read it.
struct RankTracks {
    int32_t rank = 0;
    std::vector<Lane>
        lanes;  ///< in the order shown: steps, NVTX, host threads, NVTX on the device, idle, streams, counters
    ActivityBins activity;
    std::vector<UndrawnEvents> undrawn;
    std::vector<NegativeDuration> negative;  ///< of a damaged file; table by table, by row
    std::string damage;                      ///< what of its events is missing or makes no sense; empty for sound ones

    /// The tracks that say what the GPU does.
    std::vector<const Track*> deviceTracks() const;
    ActivityView activityView() const& { return {&activity, deviceTracks()}; }
    ActivityView activityView() && = delete;  // it would outlive what it looks at
    /// Index of the lane that has the gaps of the device; lanes.size() where there is none.
    size_t idleLane() const noexcept;
    /// Events in `undrawn`.
    size_t leftOut() const noexcept;
    size_t bytes() const noexcept;
    /// As recorded; `drawnNs` unless it was negative.
    int64_t recordedDurNs(EventTable table, int64_t row, int64_t drawnNs) const noexcept;
};

using RankTracksPtr = std::shared_ptr<const RankTracks>;

/// An event on screen.
struct EventRef {
    int32_t rank = -1;
    uint32_t lane = 0;
    uint32_t part = 0;
    uint32_t index = 0;

    bool valid() const noexcept { return rank >= 0; }
    bool operator==(const EventRef&) const = default;
};

}  // namespace rankscope::gui
