// SPDX-License-Identifier: Apache-2.0
// A baseline holds runs of several kinds of job: other numbers of ranks, layouts, devices. New runs are compared with
// those of their kind, and the others tell one thing: how much runs of this cluster differ, where a kind has just
// begun.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/compare/baseline_entries.h"
#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

// Runs of other kinds tell the noise as far as a kind knows its own by fewer degrees of freedom than this, from where a
// Student quantile of 1 % is at most a sixth above the normal one. Drawn where runs differ by 2 %, a regression of 5 %
// in the third entry of a kind is found in 74 of 100 pipelines instead of 67. Where runs of the new kind differ by
// twice as much as those of the old, its first harmless change is blamed in 2.6 instead of 1.3.
inline constexpr double kEnoughDegrees = 12;

/// Takes the runs out of `runs` that are of another kind than `now`, says so in `history`, and returns what the newest
/// of them differ by that were saved together. Where all are of other kinds those of the newest kind stay.
EarlierNoise leaveOutOtherKinds(std::vector<RunSummary>& runs, const std::vector<RunSummary>& now,
                                const std::set<std::string>& across, BaselineHistory& history);

/// What `others` add to a kind's own noise: nothing where it is known by kEnoughDegrees, or differs from theirs by more
/// than chance.
EarlierNoise addedByOtherKinds(const EarlierNoise& own, const EarlierNoise& others);

/// The noise of a kind, as noiseOfRuns() has it, with what they add to what its entries tell.
RunNoise noiseOfRuns(const std::vector<BaselineEntry>& entries, const EarlierNoise& others);

}  // namespace rankscope::compare
