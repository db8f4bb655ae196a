// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

struct StragglerNodeThresholds {
    double alike = 0.5;  // each rank of the host is at least this much as slow as their median: the host is slow, not
                         // some of its devices
};

void detectStragglerNode(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForStragglerNode(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
