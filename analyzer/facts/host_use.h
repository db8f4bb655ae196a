// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/facts/rank_summary.h"

namespace rankscope::facts {

/// Allocator calls and host-device copies of each analysed step, by step; steps with neither are left out.
std::vector<HostUse> hostUse(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts);

}  // namespace rankscope::facts
