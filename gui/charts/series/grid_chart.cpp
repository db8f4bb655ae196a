// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/grid_chart.h"

#include <fmt/format.h>

#include <algorithm>

namespace rankscope::gui {

GridAxis numberedAxis(const std::string& title, const std::string& one, const std::vector<int32_t>& numbers,
                      const CellMap& cells) {
    GridAxis axis{title, {}, {}, one == "rank"};
    for (size_t cell = 0; cell < cells.cells(); ++cell) {
        const size_t first = cell * cells.perCell, last = std::min(numbers.size(), first + cells.perCell) - 1;
        axis.ticks.push_back(std::to_string(numbers[first]));
        axis.labels.push_back(first == last ? fmt::format("{} {}", one, numbers[first])
                                            : fmt::format("{}s {}-{}", one, numbers[first], numbers[last]));
    }
    return axis;
}

}  // namespace rankscope::gui
