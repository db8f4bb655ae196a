// SPDX-License-Identifier: Apache-2.0
// How many runs of each change a gate needs, told by its baseline before any of them is recorded.
//
// What a baseline knows before the first new run is how much runs differ. The number of runs follows from that alone,
// as in the first stage of Stein's procedure (Annals of Mathematical Statistics 16, 1945): an estimate of a variance
// says nothing about the mean of the runs that come after it, so that comparisons of such numbers of runs blame as many
// harmless changes as those of any other number. To look first and to record more where nothing is decided would not be
// so: a second look at the same runs is a second chance to blame them (Armitage, McPherson and Rowe, Journal of the
// Royal Statistical Society A 132, 1969: two looks at 5 % blame 8.3 %).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/step_time.h"

namespace rankscope::compare {

inline constexpr int kFewestRunsOfChange = 3;  // fewer do not tell which of them is the bad one
// Beyond three times the fewest longer runs and quieter machines are the cheaper cure: noise of 2.4 % is the most that
// nine runs bear where a regression of 5 % is to be found.
inline constexpr int kMostRunsOfChange = 9;

struct RunsNeeded {
    int runs = kFewestRunsOfChange;     // of each change
    std::optional<double> betweenRuns;  // standard deviation of a run, share of the step; empty: not known yet
    double size = 0;                    // of the regression that is to be found, a share
    std::optional<double> found;  // share of such regressions that so many runs of a change find against so many of one
                                  // that was merged; empty where the noise is not known
    bool isEnough() const { return !found || *found >= kFoundWell; }
};

/// The fewest runs of a change that find kFoundWell of the regressions of the size that 'no change' promises to see,
/// against as many runs of one change: a level that has just begun has no more. The noise is that of the newest kind of
/// job; of others as far as it is new. `baseline`: as sortByTime() leaves it. `across`: differences that make no other
/// kind. O(entries^2) at worst.
RunsNeeded runsNeeded(std::vector<RunSummary> baseline, StepTimeOptions options, const std::set<std::string>& across);

}  // namespace rankscope::compare
