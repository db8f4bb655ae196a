// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::costs {

/// Returns how many times a ring's rate a choice, or what may stand behind it where it is unknown, can show of the same
/// links at most.
double mostShare(const LinkModel& link, store::Op op, AlgorithmChoice choice);

/// A rate beyond a peak by more refutes it: clocks, and what a median of times is known to.
inline constexpr double kRefuted = 1.1;

}  // namespace rankscope::costs
