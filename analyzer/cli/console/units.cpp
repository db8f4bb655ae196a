// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/units.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace rankscope::cli {

int64_t parseBytes(std::string_view text) {
    const std::string complaint = fmt::format("'{}' is not a size: write for example 500M or 2GiB", text);
    const std::string owned(text);
    size_t used = 0;
    double number = 0;
    try {
        number = std::stod(owned, &used);
    } catch (const std::exception&) {
        throw std::invalid_argument(complaint);
    }
    std::string unit;
    for (char c : owned.substr(used))
        if (!std::isspace(static_cast<unsigned char>(c)))
            unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    constexpr std::string_view kMultiples = "kmgt";
    double factor = 1;
    if (!unit.empty() && unit != "b") {
        const size_t power = kMultiples.find(unit[0]);
        const std::string rest = unit.substr(1);
        if (power == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib"))
            throw std::invalid_argument(complaint);
        factor = std::pow(1024.0, static_cast<double>(power + 1));
    }
    const double bytes = number * factor;
    if (!(bytes >= 1) || bytes >= static_cast<double>(std::numeric_limits<int64_t>::max()))
        throw std::invalid_argument(complaint);
    return static_cast<int64_t>(bytes);
}

std::string formatBytes(int64_t bytes) {
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace rankscope::cli
