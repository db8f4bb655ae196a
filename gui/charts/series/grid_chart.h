// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gui/charts/series/chart_target.h"
#include "gui/charts/series/quantity.h"

namespace rankscope::gui {

/// Cells along one side of a grid; neighbours share a cell where there are more than fit.
struct GridAxis {
    std::string title;
    std::vector<std::string> labels;  ///< of each cell: "rank 3", "ranks 4-7", "12 ms"
    std::vector<std::string> ticks;   ///< the same, short enough for the axis: "3"
    bool byTwos = false;  ///< every 2nd, 4th, 8th… is labelled, as ranks are counted; else every 2nd, 5th, 10th…
};

/// A picture of cells: matrix, heat map, or histograms side by side. Ready to draw.
struct GridChart {
    enum class Scale : uint8_t {
        linear,
        logarithmic,
        diverging
    };  ///< diverging: blue below 0, white at it, orange above

    static constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

    std::string nothing;  ///< why there is nothing to show; empty: there is
    std::string note;     ///< how it was counted
    std::string valueTitle;
    Quantity quantity = Quantity::count;
    Scale scale = Scale::linear;
    GridAxis columns, rows;
    std::vector<float> values;         ///< row after row; kNothing where there is none
    std::vector<double> columnTotals;  ///< bars above the grid; empty: none
    /// Where a cell comes from; may answer an invalid target.
    std::function<ChartTarget(size_t column, size_t row)> targetOf;

    float at(size_t column, size_t row) const { return values[row * columns.labels.size() + column]; }
    float& at(size_t column, size_t row) { return values[row * columns.labels.size() + column]; }
};

/// Deals the members of an axis onto at most `mostCells` cells of equal width.
struct CellMap {
    size_t members = 0;
    size_t perCell = 1;

    CellMap(size_t memberCount, size_t mostCells)
        : members(memberCount), perCell(memberCount == 0 ? 1 : (memberCount + mostCells - 1) / mostCells) {}
    size_t cells() const noexcept { return (members + perCell - 1) / perCell; }
    size_t cellOf(size_t member) const noexcept { return member / perCell; }
};

/// Axis of numbered things: "rank 3" or, several to a cell, "ranks 4-7". `numbers` ascend.
GridAxis numberedAxis(const std::string& title, const std::string& one, const std::vector<int32_t>& numbers,
                      const CellMap& cells);

}  // namespace rankscope::gui
