// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

struct PageableThresholds {
    double pinnedGbps = 25;  // GB/s a pinned copy is taken to run at when the trace has none: PCIe 4.0 x16, the slowest
                             // host link of devices that train today
};

void detectPageableCopies(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
std::string missingForPageableCopies(const Analysis& analysis);

}  // namespace rankscope::analyzer
