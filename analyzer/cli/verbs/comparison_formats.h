// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"

namespace rankscope::cli {

// Names that `compare --format` and `--write` take.
const std::vector<std::string>& comparisonFormats();

// `format` is one of them.
std::string renderComparison(const compare::Comparison& comparison, const std::string& format, bool colour);

}  // namespace rankscope::cli
