// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/kernel_sequence.h"

namespace rankscope::collector {

/// Cuts the sequence by its period: the shortest run of kernel names that repeats itself without a difference. All
/// kernels count, so that it holds what a program does once in a step, too: layers that are equal, or micro-batches,
/// are no period where an update stands between them. Empty where nothing repeats three times over most of the
/// sequence.
Cuts cutsByPeriod(const KernelSequence& kernels);

}  // namespace rankscope::collector
