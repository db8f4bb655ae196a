// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/compare/comparison.h"

namespace rankscope::analyzer {

std::string renderComparisonJson(const Comparison& comparison);  // rankscope.compare/1
std::string renderComparisonText(const Comparison& comparison, bool colour = false);

}  // namespace rankscope::analyzer
