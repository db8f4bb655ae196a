// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct BubbleThresholds {
    double share = 0.10;  // of the step: the field's target for a pipeline bubble
    double unexplained =
        0.05;  // of the step beyond schedule and stage balance: noise of kernels and launch gaps stay under it
};

void detectBubble(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
