// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/change.h"

#include <fmt/format.h>

#include <charconv>

#include "analyzer/text/plain_text.h"

namespace rankscope::job {

std::string Change::text() const {
    std::string text = family;
    char separator = ':';
    for (const auto& [key, value] : arguments) {
        text += fmt::format("{}{}={}", separator, key, value);
        separator = ',';
    }
    return text;
}

std::string_view Change::value(std::string_view key) const {
    for (const auto& [name, value] : arguments)
        if (name == key) return value;
    return {};
}

std::optional<double> Change::number(std::string_view key) const {
    const std::string_view text = value(key);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::string asOptions(const std::vector<Change>& changes) {
    std::string options;
    for (const Change& change : changes) options += " --change " + text::shellWord(change.text());
    return options;
}

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

}  // namespace rankscope::job
