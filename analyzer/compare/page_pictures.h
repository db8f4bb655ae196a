// SPDX-License-Identifier: Apache-2.0
// The pictures of the comparison's page: sections with inline SVG. Empty where there is nothing to draw.
#pragma once

#include <string>

#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

/// Steps of every run beside each other, base first; the typical step of each run on top.
std::string stepsChart(const Comparison& comparison);

/// One step of every rank before and after, on one scale, of sides whose trace is at hand.
std::string overviewPictures(const Comparison& comparison);

/// Where the step of each rank goes, base above new.
std::string breakdownBars(const Comparison& comparison);

}  // namespace rankscope::compare
