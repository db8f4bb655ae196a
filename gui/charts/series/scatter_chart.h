// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gui/charts/series/chart_target.h"
#include "gui/charts/series/quantity.h"

namespace rankscope::gui {

struct ScatterPoint {
    double x = 0, y = 0;  ///< above 0: both axes are logarithmic
    int series = 0;
    int64_t count = 1;   ///< measurements in this place
    ChartTarget target;  ///< of one of them
    std::string label;   ///< "rank 3", "ranks 0-2, 4-7", "12 ranks": whose it is; empty where points are not labelled
};

struct ScatterLine {
    std::string name;
    int series = 0;  ///< whose colour it has, and under which it stands in the legend
    bool dashed = false;
    std::vector<std::pair<double, double>> points;
};

/// Points and lines over two logarithmic axes. Ready to draw.
struct ScatterChart {
    std::string nothing;  ///< why there is nothing to show; empty: there is
    std::string note;
    std::string xTitle, yTitle;
    Quantity xQuantity = Quantity::bytes, yQuantity = Quantity::bytes;
    std::vector<std::string> series;
    std::vector<ScatterPoint> points;
    std::vector<ScatterLine> lines;
};

/// Collects measurements; those of a series within 4 % of each other in both directions become one point, so that
/// millions stay a picture's worth.
class PointCollector {
  public:
    static constexpr size_t kMostPoints = 50'000;

    /// `labelled`: points have a label, with the ranks of their targets.
    explicit PointCollector(bool labelled = false) : m_labelled(labelled) {}

    /// Values that are not finite and above 0 are left out, as are those of places beyond the kMostPoints-th.
    void add(int series, double x, double y, const ChartTarget& target);
    std::vector<ScatterPoint> points() const;

  private:
    bool m_labelled;
    struct Place {
        ScatterPoint point;
        std::vector<int> ranks;  // of a labelled one, ascending
    };
    std::map<std::tuple<int, int, int>, Place> m_places;
};

}  // namespace rankscope::gui
