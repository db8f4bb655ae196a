// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

/// Steps (their numbers) in which the host submitted work that has no record on the device: dropped by CUPTI, or not
/// delivered when the process was killed. What the device did there is unknown, not idle. Empty for a rank whose
/// submissions cannot be joined with device records at all.
std::vector<int> stepsWithLostRecords(const RankEvents& events, const RankFacts& facts);

}  // namespace rankscope::facts
