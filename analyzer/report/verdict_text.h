// SPDX-License-Identifier: Apache-2.0
// The report in one sentence, the same in every format.
#pragma once

#include <cstddef>
#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// Findings that are certain.
size_t certainFindings(const Report& report);

/// "2 findings. The first costs 32.6 % of every step: …", or that nothing was found, and of what that can be said.
std::string verdictText(const Report& report);

}  // namespace rankscope::report
