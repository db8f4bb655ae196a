// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/repairs.h"

#include <fmt/format.h>

namespace rankscope::diagnose {

std::optional<double> number(const job::Finding& finding, std::string_view name) {
    for (const auto& [key, value] : finding.evidence.numbers)
        if (key == name) return value;
    return std::nullopt;
}

Changes balanced(const job::Analysis&, const job::Finding& f) {
    return {{"balance", {{"ranks", job::listText(f.ranks)}}}};
}

Changes noStalls(const char* cause, const job::Finding& f) {
    return {{"no-stalls", {{"cause", cause}, {"ranks", job::listText(f.ranks)}}}};
}

Changes healthyLinks(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> slowness = number(f, "slowness");
    if (!slowness || *slowness <= 1) return {};
    return {{"speed",
             {{"factor", fmt::format("{:.4g}", *slowness)},
              {"links", "rank"},
              {"ranks", job::listText(f.ranks)},
              {"limit", "peak"}}}};
}

}  // namespace rankscope::diagnose
