// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct FullPrecisionThresholds {
    double computeShare = 0.3;  // of the compute in kernels with a 16-bit name: mixed precision keeps norms and the
                                // optimizer in fp32, the products are 16 bit
};

void detectFullPrecision(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
std::string missingForFullPrecision(const Analysis& analysis);

}  // namespace rankscope::analyzer
