// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/detector.h"

namespace rankscope::analyzer {

void detectPageableCopies(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings);
std::string missingForPageableCopies(const Analysis& analysis);

}  // namespace rankscope::analyzer
