// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct P2pThresholds {
    double share = 0.05;  // of the step: sends of plain 1F1B are never quite hidden; below it the bubble matters more
    double boundaryShare = 0.10;  // the same where it is for one boundary: that one crosses nodes by design, and a
                                  // pipeline may stand still for a tenth (the field's target)
};

void detectExposedP2p(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);

}  // namespace rankscope::diagnose
