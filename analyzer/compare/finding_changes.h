// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Findings of both sides, matched by diagnosis and the roles of their ranks. A finding is on a side when at least half
/// of its runs have it. One that is on one side only, but costs about the same on the other as a note under the floor,
/// is not new but the same: thresholds must not make news. One that fewer than half of the new runs have, and the base
/// has not, is present; so is every one when `base` is empty. New, worse, gone, better, present, same; inside, by cost.
std::vector<FindingChange> compareFindings(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                           const SideMeans& nowMeans);

inline constexpr double kOtherCost = 0.25;       // share of the larger cost: by less than that a finding is the same
inline constexpr double kOtherStepShare = 0.01;  // of the step: the same

}  // namespace rankscope::compare
