// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "gui/timeline/curve.h"

namespace rankscope::gui {

/// A value of a curve in words: "12.3 GiB", "1980 MHz".
std::string curveText(CurveUnit unit, double value);

}  // namespace rankscope::gui
