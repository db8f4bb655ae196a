// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <cstdint>
#include <string>

#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

inline QString shown(const std::string& text) {
    return QString::fromStdString(text);
}

inline QString duration(int64_t ns) {
    return shown(durationText(ns));
}

}  // namespace rankscope::gui
