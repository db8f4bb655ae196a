// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "gui/timeline/lane_tree.h"

namespace rankscope::gui {

/// What the user chose to see of a run, as one line that can be kept.
std::string textOf(const LaneChoices& choices);
/// The choices of a text of textOf(); what is not understood, or is of a later version, is left out.
LaneChoices laneChoicesOf(std::string_view text);
/// The same choices without ranks and hosts that `outline` does not have: a run of the same name may have been recorded
/// anew.
LaneChoices onlyKnown(LaneChoices choices, const RunOutline& outline);

/// Tells a run from others, and knows it again wherever it lies: its name, when it began and how many ranks it has, as
/// 16 hexadecimal digits.
std::string runIdentity(std::string_view name, std::string_view startUnixNs, size_t ranks);

}  // namespace rankscope::gui
