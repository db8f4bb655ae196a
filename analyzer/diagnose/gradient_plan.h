// SPDX-License-Identifier: Apache-2.0
// Gradient synchronisation of one step: when it began, what compute it may hide behind, and how long the step would
// take with other buckets.
#pragma once

#include <optional>

#include "analyzer/diagnose/critical_step.h"

namespace rankscope::diagnose {

struct GradientPlan {
    double computeNs = 0;      // of the step
    double backwardStart = 0;  // in compute progress
    double backwardEnd = 0;
    double firstStart = 0;  // compute progress at which the first gradient collective starts
    double bytes = 0;
    double transferNs = 0;
    size_t messages = 0;

    double backwardNs() const { return backwardEnd - backwardStart; }
    /// 0: starts with backward; 1: only after it.
    double lateness() const { return backwardNs() > 0 ? (firstStart - backwardStart) / backwardNs() : 1; }
    // Gradients that first leave after this share of backward do not overlap it; with hooks they leave in its first
    // layers.
    static constexpr double kLateStart = 0.75;
    static constexpr double kBackwardShare =
        2.0 / 3;  // backward costs twice the forward's flop (seeds: 2 matrix products for 1)
};

/// Leaves only reductions among the steps' own collectives; the all-gathers of updated parameters (ZeRO-1 and 2) follow
/// the optimizer and are no gradients.
void keepReductions(std::vector<CriticalStep>& steps);

GradientPlan planOf(const CriticalStep& step);

}  // namespace rankscope::diagnose
