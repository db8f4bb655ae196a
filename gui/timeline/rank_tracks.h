// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/track.h"

namespace rankscope::gui {

enum class LaneKind : uint8_t { steps, nvtx, hostCalls, stream };

/// The table of trace.db an event's row id belongs to.
enum class EventTable : uint8_t { kernel, memcpy, memset, nvtx, apiCall, ncclCall, step, none };
/// Its name in trace.db; empty for none.
const char* tableName(EventTable table);

/// One line of the timeline: a track and what to call it. A stream's copies and kernels come from different tables, so that they are tracks of
/// their own in one lane.
struct Lane {
    LaneKind kind = LaneKind::stream;
    std::string label;   ///< "stream 7 compute"; unique in its rank
    struct Part {
        EventTable table = EventTable::none;
        Track track;
    };
    std::vector<Part> parts;

    size_t events() const noexcept {
        size_t events = 0;
        for (const Part& part : parts) events += part.track.size();
        return events;
    }
};

/// Everything the timeline shows of a rank. Immutable once loaded, shared by the threads that read it.
struct RankTracks {
    int32_t rank = 0;
    std::vector<Lane> lanes;      ///< in the order shown: steps, NVTX, host threads, streams
    ActivityBins activity;
    size_t leftOut = 0;           ///< events nested too deeply to be shown
    std::string damage;           ///< what of its events is missing or makes no sense; empty for sound ones

    /// The tracks that say what the GPU does.
    std::vector<const Track*> deviceTracks() const;
    size_t events() const noexcept;
    size_t bytes() const noexcept;
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
