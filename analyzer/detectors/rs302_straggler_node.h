// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct StragglerNodeThresholds {
    double alike = 0.5;  // each rank of the host is at least this much as slow as their median: the host is slow, not
                         // some of its devices
};

void detectStragglerNode(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
std::string missingForStragglerNode(const Analysis& analysis);

}  // namespace rankscope::analyzer
