// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QColor>
#include <array>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/lane_line.h"

namespace rankscope::gui {

/// Colours of the timeline. What a device does has the colours of the reports' pages (activity_colours.h); host calls
/// have others of Okabe and Ito's palette; names of one kind differ in lightness.
struct Palette {
    Rgb background, alternate, grid, text, dimText, header, selection, mark, window;
    EventColours events;
    std::array<Rgb, kActivities> activities;

    static const Palette& light();
    static const Palette& dark();
    static const Palette& of(bool isDark) { return isDark ? dark() : light(); }

    Rgb event(EventKind kind, uint32_t name) const noexcept { return events.of(kind, name); }
    /// Black or white, whichever reads better on `back`.
    static QColor ink(Rgb back) noexcept;
};

inline QColor colour(Rgb rgb) {
    return QColor::fromRgb(rgb);
}

}  // namespace rankscope::gui
