// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/time_axis.h"
#include "gui/timeline/track.h"

namespace rankscope::gui {

/// An event wide enough for a rectangle of its own.
struct Box {
    float x = 0;
    float width = 0;
    float waiting = 0;   ///< of its width, from the left: the event waits for other ranks; 0 where that is too narrow
    uint32_t event = 0;  ///< index in its track
};

/// A column of pixels that holds events too small for rectangles.
struct Speck {
    int32_t x = 0;
    float coverage = 0;  ///< share of the column's time that is busy, 0..1
    uint32_t style = 0;  ///< Track::style() of the longest event in it, which gives the colour
};

/// A column while specks gather in it.
struct SpeckColumn {
    uint64_t longest =
        0;  ///< of the longest event: its duration plus one in the upper half, its style in the lower. 0: nothing here
    float coverage = 0;
    float waiting = 0;  ///< as coverage, of the time in which events wait for other ranks
};

/// A column of pixels in which events wait for other ranks, too short for a part of a box.
struct WaitSpeck {
    int32_t x = 0;
    float coverage = 0;  ///< share of the column's time, 0..1
};

/// What one lane shows, left to right. Reused from frame to frame.
struct TrackDrawing {
    std::vector<Box> boxes;
    std::vector<Speck> specks;                  ///< by x, one a column at most
    std::vector<WaitSpeck> waits;               ///< by x, one a column at most
    std::vector<SpeckColumn> columns;           ///< where specks gather; empty columns between two drawings
    std::vector<uint32_t> groups, groupsBelow;  ///< what is left to be looked into while drawing
};

/// Narrower events become specks.
inline constexpr double kMinBoxPixels = 3;

/// Draws what `track` has in the axis' visible range. Cost: in proportion to the axis' width, however many events there
/// are.
void drawTrack(const Track& track, const TimeAxis& axis, TrackDrawing& drawing);

}  // namespace rankscope::gui
