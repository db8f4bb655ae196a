// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/report/step_overview.h"

namespace rankscope::report::html {

/// More ranks are not drawn: those that findings name, and others spread evenly.
inline constexpr size_t kMostLanes = 64;

/// Names the colours of the lanes.
std::string lanesLegend();

/// The overview as one row per rank: device above, communication below. `named` are ranks that findings name; they are
/// marked, and kept where not all can be drawn. `spanNs`: what the width of the page stands for, for several overviews
/// on one scale; the overview's own length where it is shorter.
std::string drawLanes(const StepOverview& overview, const std::vector<int>& named, int64_t spanNs = 0);

/// Which lanes are drawn, by index.
std::vector<size_t> chosenLanes(const StepOverview& overview, const std::vector<int>& named);

}  // namespace rankscope::report::html
