// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_text.h"

#include <fmt/format.h>

#include "analyzer/compare/format_parts.h"

namespace rankscope::compare {
namespace {

constexpr double kTimes = 1;  // growth from which on a factor reads better than percent

}  // namespace

std::string timeGrowthText(double growth) {
    return growth < kTimes ? signedPercentText(growth) : fmt::format("{:.1f} times as long", 1 + growth);
}

std::string longerText(double growth) {
    return growth < kTimes ? fmt::format("{:.1f} % longer", 100 * growth) : timeGrowthText(growth);
}

std::string amountGrowthText(double growth, const std::string& what) {
    return growth < kTimes ? signedPercentText(growth) + " of " + what
                           : fmt::format("{:.1f} times the {}", 1 + growth, what);
}

std::string fromTo(const std::string& fast, const std::string& slow, bool reversed) {
    return reversed ? slow + " -> " + fast : fast + " -> " + slow;
}

double fromBase(double growth, bool reversed) {
    return reversed ? 1 / (1 + growth) - 1 : growth;
}

}  // namespace rankscope::compare
