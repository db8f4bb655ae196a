// SPDX-License-Identifier: Apache-2.0
#include "collector/store/link_spec.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <vector>

namespace rankscope::store {
namespace {

constexpr const char* kForm = "write for example intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18";

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

std::vector<std::string> split(std::string_view text, char mark) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(mark, begin), text.size());
        parts.emplace_back(trimmed(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return parts;
}

/// Returns what is wrong, or nothing.
std::string readSetting(const std::string& setting, LinkSpecClass& link) {
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    if (equals == std::string::npos || (key != "gbps" && key != "alpha_us"))
        return fmt::format("'{}' is neither gbps=NUMBER nor alpha_us=NUMBER: {}", setting, kForm);
    if (key == "gbps" ? link.gbps > 0 : link.alphaUs.has_value())
        return fmt::format("{} is given twice for one class of links", key);
    const std::string number = setting.substr(equals + 1);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !std::isfinite(value))
        return fmt::format("'{}' is no number: {}", number, kForm);
    if (key == "gbps") {
        if (!(value > 0)) return fmt::format("gbps={} is no speed: it must be above 0", number);
        if (value > LinkSpec::kMostGbps)
            return fmt::format("gbps={} is above 10 TB/s, which no link reaches: write 1e9 bytes per second and rank",
                               number);
        link.gbps = value;
        return {};
    }
    if (value < 0) return fmt::format("alpha_us={} is no time: it must not be below 0", number);
    if (value > LinkSpec::kMostAlphaUs)
        return fmt::format("alpha_us={} is above a second, which no link takes to start: write microseconds per hop",
                           number);
    link.alphaUs = value;
    return {};
}

std::string readClass(const std::string& part, LinkSpec& spec) {
    const size_t colon = part.find(':');
    const std::string name(trimmed(part.substr(0, colon)));
    if (colon == std::string::npos || (name != "intra" && name != "inter"))
        return fmt::format("'{}' names no class of links: {}", part, kForm);
    std::optional<LinkSpecClass>& wanted = name == "intra" ? spec.intra : spec.inter;
    if (wanted) return fmt::format("{} is given twice", name);
    LinkSpecClass link;
    for (const std::string& setting : split(std::string_view(part).substr(colon + 1), ','))
        if (std::string complaint = readSetting(setting, link); !complaint.empty()) return complaint;
    if (!(link.gbps > 0)) return fmt::format("'{}' lacks gbps=NUMBER: {}", part, kForm);
    wanted = link;
    return {};
}

}  // namespace

LinkSpec parseLinkSpec(std::string_view text) {
    LinkSpec spec;
    if (trimmed(text).empty()) return spec;
    for (const std::string& part : split(text, ';'))
        if (std::string complaint = readClass(part, spec); !complaint.empty())
            return {std::nullopt, std::nullopt, std::move(complaint)};
    return spec;
}

}  // namespace rankscope::store
