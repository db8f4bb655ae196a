// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QPainter>
#include <vector>

#include "gui/view/palette.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// The rows of a LaneCanvas as rectangles and texts, for files that can be scaled. Nothing leaves `area`, whether or
/// not the painter clips.
void drawLaneShapes(QPainter& painter, const TimelineModel& model, const std::vector<Row>& rows, QRect area,
                    int scrollTop, const Palette& palette);

}  // namespace rankscope::gui
