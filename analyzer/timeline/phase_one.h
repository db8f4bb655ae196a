// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "analyzer/timeline/rank_summary.h"

namespace rankscope::analyzer {

/// Summaries of all recorded ranks, by rank. `workers` threads (0: one per core) each hold one rank's events at a time and read through their own
/// connection. An error of a worker is thrown here.
std::vector<RankSummary> summarizeRanks(const std::filesystem::path& trace, const TraceFacts& facts, unsigned workers);

}  // namespace rankscope::analyzer
