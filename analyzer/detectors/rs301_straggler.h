// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct StragglerThresholds {
    double ratio = 1.03;         // same kernels, same launch shape: clocks of healthy devices of one model differ by 1 to 2 %
    double errors = 3;           // standard errors the ratio must stand above 1: noise is no straggler
    double stepsShare = 2.0 / 3; // share of steps in which it must be slower: rare slow steps are RS303
    double comparedShare = 0.5;  // share of its compute time that peers run as well, else there is nothing to compare with
};

void detectStraggler(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
