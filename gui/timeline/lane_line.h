// SPDX-License-Identifier: Apache-2.0
// From what a lane shows to the colours of its pixels. All pixels of a column of a lane have one colour, so that one
// line stands for the lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/track_drawing.h"

namespace rankscope::gui {

using Rgb = uint32_t;  ///< 0xffRRGGBB

/// `share` of `front` over `back`, 0..1.
inline Rgb blend(Rgb back, Rgb front, float share) noexcept {
    const auto f = static_cast<uint32_t>(std::clamp(share, 0.0f, 1.0f) * 256.0f), b = 256 - f;
    const uint32_t redBlue = (((front & 0xff00ff) * f + (back & 0xff00ff) * b) >> 8) & 0xff00ff;
    const uint32_t green = (((front & 0x00ff00) * f + (back & 0x00ff00) * b) >> 8) & 0x00ff00;
    return 0xff000000 | redBlue | green;
}

/// Black or white, whichever reads better on `back`.
Rgb inkOn(Rgb back) noexcept;

/// Colours of events by kind, and of the names of a kind by shade; each cause of idleness has one of its own.
struct EventColours {
    static constexpr size_t kShades = 6;
    std::array<std::array<Rgb, kShades>, kEventKinds> table{};

    Rgb of(EventKind kind, uint32_t name) const noexcept {
        // Knuth's multiplicative hash: neighbouring ids get different shades.
        const size_t shade = kind == EventKind::idle ? name : name * 2654435761u >> 16;
        return table[static_cast<size_t>(kind) % kEventKinds][shade % kShades];
    }
    Rgb of(uint32_t style) const noexcept { return of(Track::kindOf(style), Track::nameOf(style)); }
};

/// Paints a drawing onto `line`, one entry a pixel. Boxes get a darker left edge, so that neighbours are told apart;
/// specks show their coverage, at least so much of it that a single short event can be seen. Where events wait for
/// other ranks they have the colour of waiting.
void paintLine(const TrackDrawing& drawing, const Track& track, const EventColours& colours, std::span<Rgb> line);

}  // namespace rankscope::gui
