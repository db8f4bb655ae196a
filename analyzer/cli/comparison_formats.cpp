// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/comparison_formats.h"

#include <array>
#include <string_view>

#include "analyzer/compare/renderers.h"

namespace rankscope::cli {
namespace {

struct Format {
    std::string_view name;
    std::string (*render)(const analyzer::Comparison&);
};

// Text has colours where it goes to a terminal, and is not among them.
constexpr std::array<Format, 8> kOthers{{{"json", analyzer::renderComparisonJson},
                                         {"md", analyzer::renderComparisonMarkdown},
                                         {"junit", analyzer::renderComparisonJunit},
                                         {"sarif", analyzer::renderComparisonSarif},
                                         {"github", analyzer::renderComparisonAnnotations},
                                         {"benchmark", analyzer::renderComparisonBenchmark},
                                         {"openmetrics", analyzer::renderComparisonOpenMetrics},
                                         {"html", analyzer::renderComparisonHtml}}};

}  // namespace

const std::vector<std::string>& comparisonFormats() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names{"text"};
        for (const Format& format : kOthers) names.emplace_back(format.name);
        return names;
    }();
    return kNames;
}

std::string renderComparison(const analyzer::Comparison& comparison, const std::string& format, bool colour) {
    for (const Format& other : kOthers)
        if (other.name == format) return other.render(comparison);
    return analyzer::renderComparisonText(comparison, colour);
}

}  // namespace rankscope::cli
