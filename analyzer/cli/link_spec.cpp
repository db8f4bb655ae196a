// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/link_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

namespace rankscope::cli {
namespace {

constexpr const char* kForm = "write for example intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18";

std::vector<std::string> split(const std::string& text, char mark) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(mark, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::string checkSetting(const std::string& setting, std::set<std::string>& keys) {
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    if (equals == std::string::npos || (key != "gbps" && key != "alpha_us")) return fmt::format("'{}' is neither gbps=NUMBER nor alpha_us=NUMBER: {}", setting, kForm);
    if (!keys.insert(key).second) return fmt::format("{} is given twice for one class of links", key);
    const std::string number = setting.substr(equals + 1);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !std::isfinite(value)) return fmt::format("'{}' is no number: {}", number, kForm);
    if (key == "gbps" && !(value > 0)) return fmt::format("gbps={} is no speed: it must be above 0", number);
    if (value < 0) return fmt::format("alpha_us={} is no time: it must not be below 0", number);
    return {};
}

}  // namespace

std::string checkLinks(const std::string& text) {
    std::set<std::string> classes;
    for (const auto& part : split(text, ';')) {
        const size_t colon = part.find(':');
        const std::string name = part.substr(0, colon);
        if (colon == std::string::npos || (name != "intra" && name != "inter")) return fmt::format("'{}' names no class of links: {}", part, kForm);
        if (!classes.insert(name).second) return fmt::format("{} is given twice", name);
        std::set<std::string> keys;
        for (const auto& setting : split(part.substr(colon + 1), ','))
            if (auto complaint = checkSetting(setting, keys); !complaint.empty()) return complaint;
        if (!keys.contains("gbps")) return fmt::format("'{}' lacks gbps=NUMBER: {}", part, kForm);
    }
    return {};
}

}  // namespace rankscope::cli
