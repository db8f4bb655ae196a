// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "collector/ingest/kernel_sequence.h"

namespace rankscope::collector {

/// Whether a kernel of this name, mangled or not, is one that optimizers update parameters with.
bool isUpdateKernelName(std::string_view name);

/// Cuts the sequence where the optimizer's updates end: whatever was accumulated before, an update ends a step. Updates
/// are kernels launched inside a range that PyTorch's optimizers open, where such ranges are recorded, else those that
/// are named like it. Empty where these do not divide the sequence into pieces that are alike.
Cuts cutsByUpdates(const RankRecording& recording, const KernelSequence& kernels);

}  // namespace rankscope::collector
