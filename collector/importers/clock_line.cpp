// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/clock_line.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace rankscope::collector {

namespace {

template <typename Value>
Value quantileOf(std::vector<Value> values, double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

}  // namespace

int64_t ClockLine::aheadAt(int64_t timeNs) const {
    return aheadNs + std::llround(drift * static_cast<double>(timeNs - anchorNs));
}

ClockLine ClockLine::reversed() const {
    return {-std::llround(static_cast<double>(aheadNs) / (1 - drift)), 1 - 1 / (1 - drift), anchorNs};
}

ClockLine ClockLine::then(const ClockLine& next) const {
    return {std::llround(static_cast<double>(aheadNs) * (1 - next.drift)) + next.aheadNs,
            1 - (1 - drift) * (1 - next.drift), anchorNs};
}

std::optional<FittedLine> fitClockLine(std::vector<std::pair<int64_t, int64_t>> points, int64_t anchorNs,
                                       size_t fewest) {
    if (points.size() < fewest) return std::nullopt;
    std::ranges::sort(points);
    std::vector<double> slopes;
    for (size_t i = 0, j = points.size() / 2; j < points.size(); ++i, ++j)
        if (points[j].first > points[i].first)
            slopes.push_back(static_cast<double>(points[j].second - points[i].second) /
                             static_cast<double>(points[j].first - points[i].first));
    if (slopes.empty()) return std::nullopt;
    FittedLine fitted;
    fitted.line = {0, quantileOf(slopes, 0.5), anchorNs};
    std::vector<int64_t> rests;
    for (const auto& [timeNs, distanceNs] : points) rests.push_back(distanceNs - fitted.line.aheadAt(timeNs));
    fitted.line.aheadNs = quantileOf(rests, 0.5);
    for (int64_t& rest : rests) rest = std::llabs(rest - fitted.line.aheadNs);
    fitted.boundNs = quantileOf(rests, 0.8);
    return fitted;
}

}  // namespace rankscope::collector
