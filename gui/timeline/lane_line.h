// SPDX-License-Identifier: Apache-2.0
// From what a lane shows to the colours of its pixels. All pixels of a column of a lane have one colour, so that one line stands for the lane.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/track_drawing.h"

namespace rankscope::gui {

using Rgb = uint32_t;  ///< 0xffRRGGBB

/// `share` of `front` over `back`, 0..1.
Rgb blend(Rgb back, Rgb front, float share) noexcept;

/// Colours of events by kind, and of the names of a kind by shade.
struct EventColours {
    static constexpr size_t kShades = 5;
    std::array<std::array<Rgb, kShades>, kEventKinds> table{};

    Rgb of(EventKind kind, uint32_t name) const noexcept {
        // Knuth's multiplicative hash: neighbouring ids get different shades.
        return table[static_cast<size_t>(kind) % kEventKinds][(name * 2654435761u >> 16) % kShades];
    }
    Rgb of(uint32_t style) const noexcept { return of(Track::kindOf(style), Track::nameOf(style)); }
};

/// Paints a drawing onto `line`, one entry a pixel. Boxes get a darker left edge, so that neighbours are told apart; specks show their coverage,
/// at least so much of it that a single short event can be seen.
void paintLine(const TrackDrawing& drawing, const Track& track, const EventColours& colours, std::span<Rgb> line);

}  // namespace rankscope::gui
