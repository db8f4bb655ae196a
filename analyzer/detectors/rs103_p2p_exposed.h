// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct P2pThresholds {
    double share = 0.05;  // of the step: sends of plain 1F1B are never quite hidden; below it the bubble matters more
    double boundaryShare = 0.10;  // the same where it is for one boundary: that one crosses nodes by design, and a
                                  // pipeline may stand still for a tenth (the field's target)
};

void detectExposedP2p(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
