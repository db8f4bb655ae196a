// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "gui/timeline/lane_tree.h"

namespace rankscope::gui {

/// Where a row's label stands.
struct LabelPlace {
    const Row* row = nullptr;
    int y = 0;    ///< of the row, in the coordinates of the area
    int top = 0;  ///< of the label
};

/// What is in sight of rows: pixels from `top` to `bottom`, the first row beginning at `origin`.
struct RowsInSight {
    int origin = 0;
    int top = 0, bottom = 0;
};

/// The labels of the rows in sight, from top to bottom, each `leastHeight` pixels high or as high as its row. Of rows
/// that are lower than a label those are named that have room for it between the higher ones, none over another and all
/// of each in sight; rows that are `first` have the choice before the others.
std::vector<LabelPlace> placeLabels(const std::vector<Row>& rows, const RowsInSight& sight, int leastHeight,
                                    const std::function<bool(const Row&)>& first);

}  // namespace rankscope::gui
