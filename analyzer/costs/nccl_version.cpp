// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace rankscope::costs {
namespace {

/// "2.28.9", "[2, 21, 5]" and ncclGetVersion()'s 22809 (2804 before 2.9).
std::optional<NcclVersion> parsed(const std::string& text) {
    std::vector<int> numbers;
    bool inNumber = false;
    for (char c : text) {
        if (!std::isdigit(static_cast<unsigned char>(c))) {
            inNumber = false;
            if (c == '+') break;  // "2.18.3+cuda12.2"
            continue;
        }
        if (!inNumber) numbers.push_back(0);
        inNumber = true;
        if (numbers.back() < 100'000'000) numbers.back() = numbers.back() * 10 + (c - '0');
    }
    if (numbers.size() == 1 && numbers[0] >= 10'000)
        return NcclVersion{numbers[0] / 10'000, numbers[0] / 100 % 100, numbers[0] % 100};
    if (numbers.size() == 1 && numbers[0] >= 1'000)
        return NcclVersion{numbers[0] / 1'000, numbers[0] / 100 % 10, numbers[0] % 100};
    if (numbers.size() < 2) return std::nullopt;
    return NcclVersion{numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 0};
}

}  // namespace

std::string NcclVersion::text() const {
    return orNewer ? fmt::format("{}.{} or newer", major, minor) : fmt::format("{}.{}.{}", major, minor, patch);
}

std::optional<NcclVersion> ncclVersionOf(const facts::TraceFacts& facts) {
    if (auto version = parsed(facts.text("nccl_version"))) return version;
    const bool pluginSpoke =
        facts.text("source") == "capture" &&
        std::any_of(facts.collectives.begin(), facts.collectives.end(),
                    [](const store::Collective& c) { return c.algorithm != store::Algorithm::unknown; });
    if (pluginSpoke) return NcclVersion{2, 26, 0, true};
    return std::nullopt;
}

}  // namespace rankscope::costs
