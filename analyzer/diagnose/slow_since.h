// SPDX-License-Identifier: Apache-2.0
// Devices that became slow in the middle of the run and stayed so: of a rank, or of all ranks of a host. Of their
// kernel times against their peers', step by step, the place and the shape are looked for that describe them best: two
// levels, or a level and behind it a straight line up. Least squares tell which, the likeliest of them under normal
// noise. What changed differs by more than chance when Student's t of it does, at so many places and shapes as there
// are to choose from, on so many ranks (Bonferroni).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/job/kernel_ratios.h"

namespace rankscope::diagnose {

inline constexpr Threshold kFewestStepsSince{"fewest steps since", 4, "steps, before the change and since",
                                             "four slow steps of ten that fall anywhere are the last four in 1 of 210 "
                                             "runs, three of ten in 1 of 120: that many ranks are common"};
inline constexpr Threshold kChangeByChance{"change by chance", 0.02, "of jobs whose ranks keep their pace",
                                           "the share in which noise alone may pass for a change"};
inline constexpr Threshold kRecoveredSteps{"recovered", 2, "last steps, none of them slow",
                                           "a slowness that is over is none to repair; one step may be noise"};

struct PaceChange {
    size_t firstStep = 0;    // index of the analysed step from which on it is slower
    double before = 0;       // median ratio of the steps before it; where it grows, where the line begins
    double since = 0;        // of the others; where it grows, where the line ends
    bool isGradual = false;  // it grows, step by step
};

/// Nothing where the pace did not change for the worse, by less than a straggler's, or where it recovered.
/// `ratioPerStep`: by analysed step, 0 where unknown. `series`: so many of them are looked at.
std::optional<PaceChange> changeOfPace(const std::vector<double>& ratioPerStep, size_t series);

struct SlowSince {
    PaceChange change;
    job::KernelRatio since;  // of the steps from the change on: isSlow()
};

/// Nothing where the rank's pace did not change, or since then it is not slow. `rank`: index into analysis.ranks.
std::optional<SlowSince> slowSince(const job::Analysis& analysis, size_t rank);

/// Behind a ratio of the steps since the change: " (1.00x before step 7)", " (growing from 1.00x in step 7 to 1.45x)".
/// Behind one of all steps " (1.65x from step 7 on, 1.10x before)". Empty without a change.
std::string sinceText(const job::Analysis& analysis, const std::optional<PaceChange>& change, bool isOfAllSteps);

/// Adds the step to the evidence, and that the cost is of the steps since then where it is.
void addChange(const job::Analysis& analysis, const std::optional<PaceChange>& change, job::Finding& finding);

/// Of a finding whose cost is of the steps since a change: says so in its evidence, and why no repair of it is played.
/// `firstStep`: index of the analysed step.
void tellCostSince(const job::Analysis& analysis, size_t firstStep, job::Finding& finding);

/// balanced(); nothing where the finding is of the steps since a change: what is played is a pace in all steps alike.
std::vector<job::Change> balancedUnlessChanged(const job::Analysis& analysis, const job::Finding& finding);

}  // namespace rankscope::diagnose
