// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct StageImbalanceThresholds {
    double excess = 0.04;  // of the mean stage: an embedding lookup, a loss and the noise of kernels leave up to this
                           // much in sound jobs
    double slower = 1.03;  // x the peers' time for the same kernels: that part is a slow device (RS301), not more work
};

void detectStageImbalance(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForStageImbalance(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
