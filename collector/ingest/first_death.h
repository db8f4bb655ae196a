// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "collector/ingest/collective_matching.h"

namespace rankscope::collector {

/// When several ranks died, the launcher or the waiting for the first one killed most of them. Names the rank whose last sign of life is the
/// earliest on the job clock, as a loss of kind first_death; says that it cannot be told when the clocks are no better than the distance to
/// the next. Nothing when fewer than two ranks died.
std::optional<store::Loss> nameFirstDeath(const JoinedRanks& ranks);

}  // namespace rankscope::collector
