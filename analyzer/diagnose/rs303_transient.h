// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct TransientThresholds {
    double sigmas = 6;  // robust standard deviations (1.4826 MAD) of the rank's own step time: noise of a few hundred
                        // steps does not reach it
    double excessShare = 0.05;  // of the rank's typical step: shorter ones are within what steps of one job differ by
    double rareShare =
        1.0 / 3;  // of a rank's steps at most: what comes more often is a second mode of the job, not an accident
    int fewestEvents = 2;  // in different steps: one slow step may be anything, and cannot be said to come back
};

void detectTransientStall(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForTransientStall(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
