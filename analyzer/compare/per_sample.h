// SPDX-License-Identifier: Apache-2.0
// Runs whose steps work on more samples than those of the other side: a longer step is then no slower one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// The run as if its step had `factor` times fewer samples: its times, counts and bytes per step divided by that.
/// Rates, shares and the number of steps stay. `factor` is above 0.
RunSummary perSamples(RunSummary run, double factor);

/// How many times the samples of a base step a new step works on, by what the stages of a pipeline send each other
/// where their schedules differ in micro-batches: bytes grow with samples, whatever the size of a micro-batch. Empty:
/// nothing tells, or the schedules are the same. Neither side is empty.
std::optional<double> samplesByPipeline(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now);

}  // namespace rankscope::compare
