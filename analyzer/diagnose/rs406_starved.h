// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct StarvedThresholds {
    int fewestPauses = 5;  // of a rank: fewer are accidents
    int fewestKinds = 4;   // different operations and calls that a rank stands still in: a lock, a file or a full queue
                           // is found in one or two
    double largestShare = 0.5;   // of a rank's paused time in one of them: then that one is the matter
    double togetherShare = 0.5;  // of a rank's paused time in which all the others pause, too: something stops them all
                                 // (a file system, a profiler), no core does
};

void detectStarvedHost(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForStarvedHost(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
