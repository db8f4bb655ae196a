// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct UnevenWorkThresholds {
    double ratio =
        1.03;  // heaviest rank's compute against the mean of its peers: the floor, where compute is the whole step
    double differentShare = 0.5;  // of that excess in kernels that the peers do not run in the same number and shape:
                                  // else it is a slow device (RS301)
    double stepsShare = 0.5;  // of the steps in which a rank is among the heaviest, to be named alone; with none, those
                              // that take turns are named
};

void detectUnevenWork(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForUnevenWork(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
