// SPDX-License-Identifier: Apache-2.0
// Which kernels of the next forward pass need which of the parameters that are gathered after an update.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/edits/gradient_curve.h"

namespace rankscope::edits {

/// The first kernel that waits for one of a member's gathers.
struct FirstUse {
    int64_t kernel = -1;  // index into ComputeLane::kernels; -1: there is none
    bool ofAll = false;   // it waits for the last of them, and so for all
};
FirstUse firstUse(const replay::TaskGraph& graph, const ComputeLane& compute,
                  const std::vector<replay::TaskId>& transfers);

/// By bucket: the kernel of the forward pass, which begins with `firstUse`, that needs its first byte. `ends`:
/// cumulative sizes of the gathers. Forward goes through the layers backward's other way round, at one speed: a layer
/// whose gradients are complete behind the share x of the backward pass is needed behind 1 - x of the forward pass.
/// `curve`: the gradients of the same step as that forward pass.
std::vector<int64_t> parameterUses(const ComputeLane& compute, int64_t firstUse, const std::vector<double>& ends,
                                   const GradientCurve& curve);

}  // namespace rankscope::edits
