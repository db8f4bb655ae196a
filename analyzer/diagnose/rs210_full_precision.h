// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct FullPrecisionThresholds {
    double computeShare = 0.3;  // of the compute in kernels with a 16-bit name: mixed precision keeps norms and the
                                // optimizer in fp32, the products are 16 bit
};

void detectFullPrecision(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForFullPrecision(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
