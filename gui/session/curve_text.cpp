// SPDX-License-Identifier: Apache-2.0
#include "gui/session/curve_text.h"

#include <fmt/format.h>

#include "analyzer/text/units.h"

namespace rankscope::gui {

std::string curveText(CurveUnit unit, double value) {
    switch (unit) {
        case CurveUnit::bytes:
            return text::bytesText(value);
        case CurveUnit::percent:
            return fmt::format("{:.0f} %", value);
        case CurveUnit::megahertz:
            return fmt::format("{:.0f} MHz", value);
        case CurveUnit::watts:
            return fmt::format("{:.0f} W", value);
        case CurveUnit::celsius:
            return fmt::format("{:.0f} \u00b0C", value);
        case CurveUnit::number:
            break;
    }
    return fmt::format("{:.6g}", value);
}

}  // namespace rankscope::gui
