// SPDX-License-Identifier: Apache-2.0
// A rank whose device became slow in the middle of the run and stayed so. Of the rank's kernel times against its
// peers', step by step, the one place is looked for that divides them best into two levels: the least sum of squares
// around both means, the likeliest place of a single change under normal noise. The two means differ by more than
// chance when Student's t of them does, at so many places as there are to choose from, on so many ranks (Bonferroni).
#pragma once

#include <optional>

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

struct SlowSince {
    job::KernelRatio since;  // of the steps from the change on: isSlow()
    double before = 0;       // median ratio of the steps before it
};

/// Nothing where the rank's pace did not change for the worse, or where it recovered, or since the change is not slow
/// by what isSlow() asks. `rank`: index into analysis.ranks.
std::optional<SlowSince> slowSince(const job::Analysis& analysis, size_t rank);

}  // namespace rankscope::diagnose
