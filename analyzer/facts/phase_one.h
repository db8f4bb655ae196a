// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "analyzer/facts/rank_summary.h"

namespace rankscope::facts {

/// Summaries of all recorded ranks, by rank. `workers` threads (0: one per core) each hold one rank's events at a time
/// and read through their own connection. An error of a worker is thrown here. `visit` sees the events of each rank
/// before they are taken apart: called by the workers, several at a time, each rank once.
std::vector<RankSummary> summarizeRanks(const std::filesystem::path& trace, const TraceFacts& facts, unsigned workers,
                                        const std::function<void(const RankEvents&)>& visit = nullptr);

}  // namespace rankscope::facts
