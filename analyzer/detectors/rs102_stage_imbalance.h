// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct StageImbalanceThresholds {
    double excess = 0.10;  // of the mean stage: embedding, head and a layer count that does not divide leave about this much in sound jobs
    double slower = 1.03;  // x the peers' time for the same kernels: that part is a slow device (RS301), not more work
};

void detectStageImbalance(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
