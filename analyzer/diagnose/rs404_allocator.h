// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/detector.h"

namespace rankscope::diagnose {

void detectAllocatorChurn(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings);
std::string missingForAllocatorChurn(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
