// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/diagnose/critical_step.h"

namespace rankscope::diagnose {

struct MicroStepThresholds {
    static constexpr double kSpacing = 0.1;  // the repeats lie this evenly in the compute: micro-steps do the same
                                             // work, kernels' noise averages out over a pass
    static constexpr double kPause =
        1.5;  // times the usual distance of two reductions: forward is half of backward, so two buckets already give 2
    static constexpr size_t kMost = 128;  // micro-steps per step tried
};

/// Repeats of one sequence of reductions within a step, one per micro-step.
struct GradientRepeats {
    size_t microSteps = 1;           // 1: none found
    std::vector<size_t> reductions;  // indices into step.tasks, in order; microSteps x the same sizes
};

/// Finds k > 1 equal sequences (operation, type, sizes) that begin at the same point of each k-th part of the compute.
/// A single backward pass with equal buckets does not pass: its first message comes behind a forward pass, the others
/// do not.
GradientRepeats findRepeats(const CriticalStep& step);

}  // namespace rankscope::diagnose
