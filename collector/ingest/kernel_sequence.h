// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

struct KernelLaunch {
    int32_t nameId = 0;         ///< index into the recording's strings
    bool communicates = false;  ///< carries a collective or a message
    int64_t launchNs = 0;       ///< on the host
    int64_t durNs = 0;          ///< on the device
};

/// A rank's kernels in the order in which its host launched them: the order of its program, whatever streams they are
/// on.
using KernelSequence = std::vector<KernelLaunch>;

KernelSequence kernelsInLaunchOrder(const RankRecording& recording);

/// Where a sequence is cut into steps: step k is [cuts[k], cuts[k + 1]). Fewer than two cuts are no step.
using Cuts = std::vector<size_t>;

/// How alike the pieces between cuts are, 0 to 1: the share of compute time in kernels that their piece holds as often
/// as most pieces do. Pieces that each hold the whole program come near 1; those of which one holds a forward pass and
/// others some layers of backward do not. The first of four and more pieces may differ: it sets things up. What some
/// pieces hold beyond the others, of the same kernels, is a validation pass, and counts for neither.
double alikeShare(const KernelSequence& kernels, const Cuts& cuts);

/// From this share on the pieces are steps: where layers are equal, forward takes a third of the time, and pieces of
/// which only some hold it have 2/3.
constexpr double kAlike = 0.8;

}  // namespace rankscope::collector
