// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/rank_tracks.h"

#include <algorithm>
#include <utility>

namespace rankscope::gui {

const char* tableName(EventTable table) {
    switch (table) {
        case EventTable::kernel:
            return "kernel";
        case EventTable::memcpy:
            return "memcpy";
        case EventTable::memset:
            return "memset";
        case EventTable::nvtx:
        case EventTable::nvtxOnDevice:
            return "nvtx";
        case EventTable::apiCall:
            return "api_call";
        case EventTable::ncclCall:
            return "nccl_call";
        case EventTable::step:
            return "step";
        case EventTable::idleGap:
            return "idle_gap";
        case EventTable::none:
            return "";
    }
    return "";
}

std::vector<const Track*> RankTracks::deviceTracks() const {
    std::vector<const Track*> tracks;
    for (const Lane& lane : lanes) {
        if (lane.kind != LaneKind::stream) continue;
        for (const Lane::Part& part : lane.parts) tracks.push_back(&part.track);
    }
    return tracks;
}

size_t RankTracks::idleLane() const noexcept {
    return static_cast<size_t>(std::ranges::find(lanes, LaneKind::idle, &Lane::kind) - lanes.begin());
}

size_t RankTracks::bytes() const noexcept {
    size_t bytes = activity.bytes();
    for (const Lane& lane : lanes) {
        bytes += lane.curve.bytes();
        for (const Lane::Part& part : lane.parts) bytes += part.track.bytes();
    }
    for (const UndrawnEvents& more : undrawn) bytes += more.events.size() * sizeof(TrackEvent);
    return bytes + negative.size() * sizeof(NegativeDuration);
}

size_t RankTracks::leftOut() const noexcept {
    size_t events = 0;
    for (const UndrawnEvents& more : undrawn) events += more.events.size();
    return events;
}

int64_t RankTracks::recordedDurNs(EventTable table, int64_t row, int64_t drawnNs) const noexcept {
    if (drawnNs != 0 || negative.empty()) return drawnNs;
    const auto found = std::lower_bound(negative.begin(), negative.end(), std::pair(table, row),
                                        [](const NegativeDuration& a, const std::pair<EventTable, int64_t>& b) {
                                            return std::pair(a.table, a.row) < b;
                                        });
    return found != negative.end() && found->table == table && found->row == row ? found->durNs : drawnNs;
}

}  // namespace rankscope::gui
