// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct AlgorithmThresholds {
    double forcedRatio = 1.1;  // time against the best choice when NCCL_ALGO or NCCL_PROTO forced it: nobody has
                               // weighed the sizes, the formulas' error decides
    double chosenRatio =
        1.5;  // when NCCL chose by itself: it knows the hardware better than these formulas unless they differ grossly
};

void detectAlgorithm(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForAlgorithm(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
