// SPDX-License-Identifier: Apache-2.0
// Runs that are not like the others of their kind: one of three that got a slow device or a neighbour. They say nothing
// of the job, neither of its step nor of the noise of machines that are well.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

// Of normal values one in 16,000 lies so many standard deviations from the middle.
inline constexpr double kFarOff = 4;
// Of the step: what is no change of a build (StepTimeOptions::threshold) makes no run odd.
inline constexpr double kLeastOdd = 0.01;
inline constexpr size_t kFewestForOdd = 3;  // of two runs that differ nothing tells which is the odd one

/// Those of `logs` that are kFarOff times `noise` and kLeastOdd from the middle of all, in their order; none where they
/// are as many as the others, or there are fewer than kFewestForOdd. `noise`: standard deviation of a run.
std::vector<size_t> farOff(const std::vector<double>& logs, double noise);

/// A finding of the run whose cure is another machine (a slow device, a slow link) and that fewer than half of `runs`
/// have; nullptr: none. The one that costs most.
const FindingSummary* findingOfItsMachine(const RunSummary& run, const std::vector<const RunSummary*>& runs);

/// The odd ones of runs with these logarithms of their typical step: those far off, and slower ones with a finding of
/// their machine.
std::vector<size_t> oddOnes(const std::vector<const RunSummary*>& runs, const std::vector<double>& logs, double noise);

/// What is to be said of an odd run: how long its step is, how long those of the `others` are, and where it is slow.
OddRun describeOddRun(const RunSummary& run, const std::vector<const RunSummary*>& others, std::string side);

}  // namespace rankscope::compare
