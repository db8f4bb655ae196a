// SPDX-License-Identifier: Apache-2.0
// The first view of a recording: what ran, how often and how long, by name.
#pragma once

#include <string>
#include <vector>

#include "analyzer/stats/stats_table.h"
#include "collector/store/reader.h"

namespace rankscope::stats {

struct EventStatsOptions {
    bool perRank = false;  ///< a row for each rank and name; else the ranks together
    size_t top = 20;       ///< rows of each table, those with most time; 0: all
};

/// Kernels, copies, CUDA calls, NCCL's operations and NVTX ranges by name: count, sum, median, least and most, share of
/// the table's sum. An NCCL operation takes what its kernel takes, waiting included; where it has none, what its call
/// does. Calls that share a kernel are one operation: "group: recv + send". Bytes are unknown where one call's are.
std::vector<StatsTable> eventStats(store::TraceReader& trace, const EventStatsOptions& options);

}  // namespace rankscope::stats
