// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "gui/session/run_info.h"

namespace rankscope::gui {

/// The step `by` steps after (below 0: before) the one in the middle of the view, with a little room at both ends; by
/// the steps of `rank`, or of the first rank that has some where it has none. Where the middle is in front of all steps
/// the next is the first. Nothing behind either end.
std::optional<TimeRange> stepBeside(const RunInfo& run, int32_t rank, TimeRange visible, int by);
/// The step of that number, with as much room; by the same steps. Nothing where there is none.
std::optional<TimeRange> roomOfStep(const RunInfo& run, int32_t rank, int64_t number);

}  // namespace rankscope::gui
