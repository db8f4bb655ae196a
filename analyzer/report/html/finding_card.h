// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::report::html {

/// One finding with its evidence, its fix to copy, and what the catalogue says of its kind.
std::string findingCard(const Report& report, const job::Finding& finding);

}  // namespace rankscope::report::html
