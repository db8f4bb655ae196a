// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct OverlapThresholds {
    double lateStart = 0.75;  // gradients that first leave after this share of backward do not overlap it; with hooks
                              // they leave in its first layers
    double bucketMebi = 25;   // bucket the saving is predicted with: the default of DDP's bucket_cap_mb
    double lateCallShare = 0.5;  // of what overlap would save: with less than half of it late calls are not the cause
    double overlapTarget =
        0.8;  // share of hidden communication above which overlap is called good (the field's target)
};

void detectPoorOverlap(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForPoorOverlap(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
