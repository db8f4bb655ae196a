// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/export/walk_trace.h"
#include "collector/store/reader.h"

namespace rankscope::exports {

struct TimeRange {
    int64_t fromNs = INT64_MIN;
    int64_t toNs = INT64_MAX;
    bool holds(int64_t ns) const { return ns >= fromNs && ns < toNs; }
};

/// Knows which ranks are selected, and which time of each: the steps of a rank begin and end when they do on that rank.
class SelectedTimes {
  public:
    SelectedTimes(store::TraceReader& trace, const ExportSelection& selection);
    bool hasRank(int rank) const;
    /// Returns no time for a rank without any of the steps.
    TimeRange of(int rank) const;
    bool holds(int rank, int64_t ns) const { return hasRank(rank) && of(rank).holds(ns); }
    /// Tells whether the time of any of the ranks touches this one.
    bool touches(int64_t fromNs, int64_t toNs) const;

  private:
    std::vector<int> m_ranks;
    bool m_allTimes;
    std::map<int, TimeRange> m_times;
};

}  // namespace rankscope::exports
