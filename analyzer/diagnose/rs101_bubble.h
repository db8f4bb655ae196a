// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct BubbleThresholds {
    double share = 0.10;  // of the step: the field's target for a pipeline bubble
    double unexplained =
        0.05;  // of the step beyond schedule and stage balance: noise of kernels and launch gaps stay under it
};

void detectBubble(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);

}  // namespace rankscope::diagnose
