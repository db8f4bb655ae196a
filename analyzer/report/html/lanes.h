// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/report/step_overview.h"

namespace rankscope::analyzer::html {

/// More ranks are not drawn: those that findings name, and others spread evenly.
inline constexpr size_t kMostLanes = 64;

/// The overview as one row per rank: device above, communication below. `named` are ranks that findings name; they are marked, and kept where not all can be drawn.
std::string drawLanes(const StepOverview& overview, const std::vector<int>& named);

/// Which lanes are drawn, by index.
std::vector<size_t> chosenLanes(const StepOverview& overview, const std::vector<int>& named);

}  // namespace rankscope::analyzer::html
