// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/comparison_formats.h"

#include "analyzer/compare/renderers.h"

namespace rankscope::cli {

const std::vector<std::string>& comparisonFormats() {
    static const std::vector<std::string> kFormats = {"text", "json"};
    return kFormats;
}

std::string renderComparison(const analyzer::Comparison& comparison, const std::string& format, bool colour) {
    if (format == "json") return analyzer::renderComparisonJson(comparison);
    return analyzer::renderComparisonText(comparison, colour);
}

}  // namespace rankscope::cli
