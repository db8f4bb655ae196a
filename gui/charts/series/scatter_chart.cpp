// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/scatter_chart.h"

#include <algorithm>
#include <cmath>

#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::gui {
namespace {

// Places a factor of 1.04 apart: about a pixel and a half on a decade of 100 pixels.
int place(double value) {
    return static_cast<int>(std::lround(std::log(value) / std::log(1.04)));
}

std::string labelOf(const std::vector<int>& ranks) {
    constexpr size_t kMostRanges = 4;  // more are not read
    return text::rankRanges(ranks).size() > kMostRanges ? text::countedText(ranks.size(), "rank")
                                                        : text::ranksText(ranks);
}

}  // namespace

void PointCollector::add(int series, double x, double y, const ChartTarget& target) {
    if (!std::isfinite(x) || !std::isfinite(y) || !(x > 0) || !(y > 0)) return;
    const std::tuple key{series, place(x), place(y)};
    auto found = m_places.find(key);
    if (found == m_places.end()) {
        if (m_places.size() >= kMostPoints) return;
        found = m_places.emplace(key, Place{{x, y, series, 0, target, {}}, {}}).first;
    }
    auto& [point, ranks] = found->second;
    ++point.count;
    if (!m_labelled || target.rank < 0) return;
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), target.rank);
    if (at == ranks.end() || *at != target.rank) ranks.insert(at, target.rank);
}

std::vector<ScatterPoint> PointCollector::points() const {
    std::vector<ScatterPoint> points;
    points.reserve(m_places.size());
    for (const auto& [key, place] : m_places) {
        points.push_back(place.point);
        if (m_labelled) points.back().label = labelOf(place.ranks);
    }
    return points;
}

}  // namespace rankscope::gui
