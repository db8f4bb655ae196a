// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

/// Thresholds: slow_ranks.h.
void detectStraggler(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
std::string missingForStraggler(const Analysis& analysis);

}  // namespace rankscope::analyzer
