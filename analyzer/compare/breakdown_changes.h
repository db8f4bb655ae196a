// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Where a step of each rank goes on both sides, matched by role; by rank of the new side. A role that one side lacks
/// has that side empty.
std::vector<BreakdownChange> compareBreakdowns(const SideMeans& base, const SideMeans& now);

}  // namespace rankscope::compare
