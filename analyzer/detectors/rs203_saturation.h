// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct SaturationThresholds {
    double ceilingShare = 0.8;   // of the time the link's peak and start-up predict: the rest is protocol overhead and sharing
    double largeShare = 0.5;     // start-up share above which messages are small: then RS202 is the question, not bandwidth
};

void detectSaturation(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
