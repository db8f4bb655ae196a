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

std::optional<ProfilerFileName> parseProfilerFileName(std::string_view name) {
    if (name.ends_with(".gz")) name.remove_suffix(3);
    constexpr std::string_view kEnding = ".pt.trace.json";
    if (!name.ends_with(kEnding)) return std::nullopt;
    name.remove_suffix(kEnding.size());
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto isNumber = [](std::string_view text) {
        return !text.empty() && text.size() <= 19 && text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    if (!isNumber(name.substr(dot + 1))) return std::nullopt;  // the time
    name = name.substr(0, dot);
    const size_t underscore = name.rfind('_');
    if (underscore == std::string_view::npos || underscore == 0) return std::nullopt;
    const std::string_view pid = name.substr(underscore + 1);
    if (!isNumber(pid) || pid.size() > 10) return std::nullopt;
    return ProfilerFileName{std::string(name.substr(0, underscore)), std::stoll(std::string(pid))};
}

}  // namespace rankscope::collector
