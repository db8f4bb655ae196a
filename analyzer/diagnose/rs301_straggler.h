// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

/// Thresholds: slow_ranks.h.
void detectStraggler(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForStraggler(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
