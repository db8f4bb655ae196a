// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "analyzer/export/exported_event.h"
#include "analyzer/export/track_lanes.h"

namespace rankscope::exports {

enum class TrackKind : int64_t { steps = 0, nvtx = 1, nccl = 2, api = 3, stream = 4 };

/// Tracks of one rank. A track is announced when its first event comes.
class RankTracks {
  public:
    RankTracks(int rank, ExportSink& sink) : m_rank(rank), m_sink(sink) {}
    const ExportedTrack& place(TrackKind kind, int64_t owner, const std::string& name, int64_t startNs, int64_t endNs) {
        const size_t lane = m_lanes[{kind, owner}].place(startNs, endNs);
        const auto [at, isNew] = m_tracks.try_emplace(trackId(kind, owner, lane));
        if (isNew) {
            at->second = {m_rank, at->first, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1)};
            m_sink.track(at->second);
        }
        return at->second;
    }

  private:
    static constexpr size_t kMostLanes = 1 << 16;
    // The kind, the thread or stream, the lane. Threads and streams number fewer than 2^32 in a run.
    static int64_t trackId(TrackKind kind, int64_t owner, size_t lane) {
        return (static_cast<int64_t>(kind) << 48) + (owner << 16) +
               static_cast<int64_t>(std::min(lane, kMostLanes - 1));
    }

    int m_rank;
    ExportSink& m_sink;
    std::map<std::pair<TrackKind, int64_t>, TrackLanes> m_lanes;
    std::map<int64_t, ExportedTrack> m_tracks;
};

}  // namespace rankscope::exports
