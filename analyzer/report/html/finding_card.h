// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::analyzer::html {

/// One finding with its evidence, its fix to copy, and what the catalogue says of its kind.
std::string findingCard(const Report& report, const Finding& finding);

}  // namespace rankscope::analyzer::html
