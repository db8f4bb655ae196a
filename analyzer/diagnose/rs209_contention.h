// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct ContentionThresholds {
    double slowdown =
        1.05;  // beside communication against alone: NCCL's few multiprocessors cost a few percent on healthy devices
    double errors = 4;  // standard errors of the ranks' mean above no slowdown
    double everyRank =
        0.5;  // of the median loss, on each rank within its standard error: one rank alone would be a slow device
};

void detectContention(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);

}  // namespace rankscope::diagnose
