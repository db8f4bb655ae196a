// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/lane_tree.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

/// The run's ranks by the share of `time` in which their devices only wait for other ranks, least first: whom the
/// others wait for is on top. Equal ones by number; those of which nothing is known last.
std::vector<int32_t> ranksByWaiting(const LaneTree& lanes, TimeRange time);

}  // namespace rankscope::gui
