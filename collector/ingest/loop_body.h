// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/kernel_sequence.h"

namespace rankscope::collector {

/// Cuts a sequence whose updates end at `ends` into steps. A step begins where the loop over steps begins to repeat
/// itself: at kernels that stand in front of the first update, at `firstUpdate`, and behind each other one. What a
/// later step has before them is of the step before: gradients set to zero, the part of an update that is not named
/// like one. Where no such kernels are found, the steps begin at the ends, and the first is that behind the first
/// update.
Cuts cutsByLoop(const KernelSequence& kernels, const Cuts& ends, size_t firstUpdate);

}  // namespace rankscope::collector
