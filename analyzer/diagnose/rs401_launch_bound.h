// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct LaunchBoundThresholds {
    int fewestGaps = 20;        // per step: a handful of late launches is something the host does there, not its pace
    double largestShare = 0.5;  // of the step's late time in one gap: then that gap is the matter
    double gapsShare = 0.1;     // of the step's kernels start as soon as they are launched: part of a step can be bound
                                // while the rest is not
    int64_t longestGapNs = 1'000'000;  // a launch takes the host 5 to 100 us, with all that a framework does around it:
                                       // in longer gaps it does something else
    int64_t launchNs = 10'000;         // from a call to its kernel
    int64_t kernelNs = 100'000;  // the kernel in front of a gap; behind a longer one the host was not late for its
                                 // calls (5 to 50 us each)
};

void detectLaunchBound(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForLaunchBound(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
