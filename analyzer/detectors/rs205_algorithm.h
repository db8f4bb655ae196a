// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct AlgorithmThresholds {
    double forcedRatio = 1.1;  // time against the best choice when NCCL_ALGO or NCCL_PROTO forced it: nobody has
                               // weighed the sizes, the formulas' error decides
    double chosenRatio =
        1.5;  // when NCCL chose by itself: it knows the hardware better than these formulas unless they differ grossly
};

void detectAlgorithm(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
std::string missingForAlgorithm(const Analysis& analysis);

}  // namespace rankscope::analyzer
