// SPDX-License-Identifier: Apache-2.0
// From what a lane shows to the colours of its pixels. All pixels of a column of a lane have one colour, so that one line stands for the lane.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/track_drawing.h"

namespace rankscope::gui {

using Rgb = uint32_t;  ///< 0xffRRGGBB

/// `share` of `front` over `back`, 0..1.
Rgb blend(Rgb back, Rgb front, float share) noexcept;

/// Colour of an event of the track.
using EventColour = std::function<Rgb(const Track&, uint32_t event)>;

/// Paints a drawing onto `line`, one entry a pixel. Boxes get a darker left edge, so that neighbours are told apart; specks show their coverage,
/// at least so much of it that a single short event can be seen.
void paintLine(const TrackDrawing& drawing, const Track& track, const EventColour& colour, std::span<Rgb> line);

}  // namespace rankscope::gui
