// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

void detectTensorParallelSpan(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);

}  // namespace rankscope::analyzer
