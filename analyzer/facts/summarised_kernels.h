// SPDX-License-Identifier: Apache-2.0
// Reads what recordings say of kernels that they hold as summaries only (`rankscope run --light=kernels`).
#pragma once

#include <vector>

#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/rank_summary.h"

namespace rankscope::facts {

/// Fills the kernels of `summary`, and where the time of its steps went. Spans begin where the host marks a step, steps
/// where the device has done with the one before: each span counts in a step by the part of it that lies there.
/// `summary` holds what calls alone tell, in which all communication is exposed; what of it compute hides is known of a
/// step as a whole, and taken off each of its communication kernels alike. Copies are not summarised: they are idle
/// time.
void addSummarisedKernels(const RankEvents& events, const std::vector<StepWindow>& steps, RankSummary& summary);

}  // namespace rankscope::facts
