// SPDX-License-Identifier: Apache-2.0
// What was recorded, and where time goes, in words that every format shares.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// "8 ranks on 2 hosts, virtual GPUs", "rank 3 of 8", "1 rank": what nobody told is not said.
std::string ranksOnHostsText(const RunSection& run);

/// Why devices idle: words and share of the step over all ranks, largest first; shares under half a percent are left
/// out.
std::vector<std::pair<std::string, double>> idleShares(const Report& report);

/// "idle, in % of the step over all ranks: the host launches late 8.2 %, …"; empty where hardly any is.
std::string idleText(const Report& report);

/// A line for each rank that costs the others most: "rank 5 costs ranks 0-4, 6, 7 148 ms of each step (32.9 %): 85.1 ms
/// waiting, 63.0 ms transfer that would have been hidden". None where no rank costs PriceThresholds::kFloorShare of
/// the step.
std::vector<std::string> delayLines(const Report& report);

}  // namespace rankscope::report
