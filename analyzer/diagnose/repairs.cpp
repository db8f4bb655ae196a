// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/repairs.h"

#include <fmt/format.h>

namespace rankscope::diagnose {

std::string listText(const std::vector<int>& numbers) {
    std::string text;
    for (size_t i = 0; i < numbers.size();) {
        size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : "+", numbers[i]);
        if (last > i) text += fmt::format("-{}", numbers[last]);
        i = last + 1;
    }
    return text;
}

std::optional<double> number(const job::Finding& finding, std::string_view name) {
    for (const auto& [key, value] : finding.evidence.numbers)
        if (key == name) return value;
    return std::nullopt;
}

Changes balanced(const job::Analysis&, const job::Finding& f) {
    return {"balance:ranks=" + listText(f.ranks)};
}

Changes healthyLinks(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> slowness = number(f, "slowness");
    return slowness && *slowness > 1 ? Changes{fmt::format("speed:factor={:.4g},links=rank,ranks={},limit=peak",
                                                           *slowness, listText(f.ranks))}
                                     : Changes();
}

}  // namespace rankscope::diagnose
