// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/scatter_chart.h"

#include <cmath>

namespace rankscope::gui {
namespace {

// Places a factor of 1.04 apart: about a pixel and a half on a decade of 100 pixels.
int place(double value) {
    return static_cast<int>(std::lround(std::log(value) / std::log(1.04)));
}

}  // namespace

void PointCollector::add(int series, double x, double y, const ChartTarget& target) {
    if (!std::isfinite(x) || !std::isfinite(y) || !(x > 0) || !(y > 0)) return;
    const std::tuple key{series, place(x), place(y)};
    if (const auto found = m_places.find(key); found != m_places.end()) {
        ++found->second.count;
    } else if (m_places.size() < kMostPoints) {
        m_places.emplace(key, ScatterPoint{x, y, series, 1, target});
    }
}

std::vector<ScatterPoint> PointCollector::points() const {
    std::vector<ScatterPoint> points;
    points.reserve(m_places.size());
    for (const auto& [key, point] : m_places) points.push_back(point);
    return points;
}

}  // namespace rankscope::gui
