// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "gui/session/event_filter.h"
#include "gui/session/run_info.h"

namespace rankscope::gui {

/// What to show for a place that somebody typed: "step 5"; "2.27 s", which the view is centred at, as wide as it is but
/// no more than a fiftieth of the run; "2.27 s to 2.72 s", as reports write it. Steps are those of `rank`, or of the
/// first rank that has some where it has none.
Parsed<TimeRange> parsePlace(std::string_view text, const RunInfo& run, int32_t rank, TimeRange visible);

}  // namespace rankscope::gui
