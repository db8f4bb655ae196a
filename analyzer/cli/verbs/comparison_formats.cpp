// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/verbs/comparison_formats.h"

#include <array>
#include <string_view>

#include "analyzer/compare/renderers.h"

namespace rankscope::cli {
namespace {

struct Format {
    std::string_view name;
    std::string (*render)(const compare::Comparison&);
};

// Text has colours where it goes to a terminal, and is not among them.
constexpr std::array<Format, 8> kOthers{{{"json", compare::renderComparisonJson},
                                         {"md", compare::renderComparisonMarkdown},
                                         {"junit", compare::renderComparisonJunit},
                                         {"sarif", compare::renderComparisonSarif},
                                         {"github", compare::renderComparisonAnnotations},
                                         {"benchmark", compare::renderComparisonBenchmark},
                                         {"openmetrics", compare::renderComparisonOpenMetrics},
                                         {"html", compare::renderComparisonHtml}}};

}  // namespace

const std::vector<std::string>& comparisonFormats() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names{"text"};
        for (const Format& format : kOthers) names.emplace_back(format.name);
        return names;
    }();
    return kNames;
}

std::string renderComparison(const compare::Comparison& comparison, const std::string& format, bool colour) {
    for (const Format& other : kOthers)
        if (other.name == format) return other.render(comparison);
    return compare::renderComparisonText(comparison, colour);
}

}  // namespace rankscope::cli
