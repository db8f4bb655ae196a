// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/change.h"

#include <fmt/format.h>

#include <charconv>

#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

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
    return text::joined(text::rankRanges(numbers), "+");
}

}  // namespace rankscope::job
