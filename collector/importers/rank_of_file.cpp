// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/rank_of_file.h"

#include <cctype>
#include <charconv>
#include <string>

namespace rankscope::collector {

std::optional<int32_t> rankFromFileName(std::string_view name) {
    std::string lower(name);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::optional<int32_t> rank;
    size_t lastAt = 0;
    for (const std::string_view word : {"rank", "worker"}) {
        for (size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
            size_t digits = at + word.size();
            if (digits < lower.size() &&
                (lower[digits] == '-' || lower[digits] == '_' || lower[digits] == '.' || lower[digits] == '='))
                ++digits;
            int32_t number = 0;
            const auto [end, error] = std::from_chars(lower.data() + digits, lower.data() + lower.size(), number);
            if (error != std::errc{} || number < 0 || (rank && at < lastAt)) continue;
            rank = number;
            lastAt = at;
        }
    }
    return rank;
}

}  // namespace rankscope::collector
