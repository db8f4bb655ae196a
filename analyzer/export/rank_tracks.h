// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/export/exported_event.h"

namespace rankscope::exports {

/// Puts events that come by start on as few lanes as they need: on a lane events follow or enclose each other, as
/// viewers expect of a thread.
class TrackLanes {
  public:
    /// Lane, from 0, of an event.
    size_t place(int64_t startNs, int64_t endNs) {
        for (size_t lane = 0; lane < m_open.size(); ++lane) {
            std::vector<int64_t>& open = m_open[lane];
            while (!open.empty() && open.back() <= startNs) open.pop_back();
            if (!open.empty() && open.back() < endNs) continue;
            open.push_back(endNs);
            return lane;
        }
        m_open.push_back({endNs});
        return m_open.size() - 1;
    }

  private:
    std::vector<std::vector<int64_t>> m_open;  // ends of the events that enclose the present time, outermost first
};

enum class TrackKind : int64_t { steps = 0, nvtx = 1, nccl = 2, api = 3, stream = 4, waits = 5, network = 6 };

/// Tracks of one rank. A track is announced when its first event comes.
class RankTracks {
  public:
    RankTracks(int rank, ExportSink& sink) : m_rank(rank), m_sink(sink) {}
    const ExportedTrack& place(TrackKind kind, int64_t owner, const std::string& name, int64_t startNs, int64_t endNs) {
        const size_t lane = m_lanes[{kind, owner}].place(startNs, endNs);
        const auto [at, isNew] = m_tracks.try_emplace(trackId(kind, owner, lane));
        if (isNew) {
            at->second = {m_rank, at->first, lane == 0 ? name : name + " (" + std::to_string(lane + 1) + ")"};
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
