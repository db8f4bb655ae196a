// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "collector/store/reader.h"

namespace rankscope::gui {

/// A communicator as the charts need it.
struct ChartCommunicator {
    int size = 0;                  ///< ranks NCCL told of; at least the recorded members
    int nodes = 1;                 ///< hosts of its members
    int smallestNode = 1;          ///< fewest members on one of them
    std::vector<int32_t> members;  ///< recorded, by rank in the communicator; -1 where unknown
};

/// Who takes part in a job: ranks, hosts, communicators and links. Rows that contradict the rank table are dropped.
struct ChartJob {
    std::vector<int32_t> ranks;                   ///< ascending
    std::unordered_map<int32_t, size_t> indexOf;  ///< in ranks
    std::unordered_map<int32_t, int64_t> hostOf;
    std::map<int64_t, ChartCommunicator> communicators;
    costs::LinkPeaks links;  ///< as the analysis took them; of a run that was not analysed, as its user told them

    bool knows(int32_t rank) const { return indexOf.contains(rank); }
    /// Both ranks on one host, as far as is known.
    bool sameHost(int32_t a, int32_t b) const;
    /// Highest bus bandwidth that the best algorithm reaches of an operation on `size` ranks of `nodes` hosts with at
    /// least `smallestNode` on each.
    std::optional<double> ceiling(store::Op op, int size, int nodes, int smallestNode) const;
};

ChartJob readChartJob(store::TraceReader& reader);

}  // namespace rankscope::gui
