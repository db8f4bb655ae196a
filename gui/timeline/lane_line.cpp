// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/lane_line.h"

#include <algorithm>
#include <cmath>

namespace rankscope::gui {
namespace {

constexpr float kLeastCoverage = 0.3f;

// With a darker left edge, unless that is outside of the picture.
void paintBox(float x, float boxWidth, Rgb fill, std::span<Rgb> line) {
    const auto width = static_cast<int32_t>(line.size());
    const int32_t left = std::clamp(static_cast<int32_t>(std::lround(x)), 0, width);
    const int32_t right = std::clamp(static_cast<int32_t>(std::lround(x + boxWidth)), left, width);
    std::fill(line.begin() + left, line.begin() + right, fill);
    if (right > left && x >= 0) line[static_cast<size_t>(left)] = blend(fill, 0xff000000, 0.35f);
}

}  // namespace

Rgb inkOn(Rgb back) noexcept {
    const uint32_t red = back >> 16 & 0xff, green = back >> 8 & 0xff, blue = back & 0xff;
    return 299 * red + 587 * green + 114 * blue > 140'000 ? 0xff000000 : 0xffffffff;  // luma of ITU-R BT.601
}

void paintLine(const TrackDrawing& drawing, const Track& track, const EventColours& colours, std::span<Rgb> line) {
    const auto width = static_cast<int32_t>(line.size());
    for (const Speck& speck : drawing.specks) {
        if (speck.x < 0 || speck.x >= width) continue;
        Rgb& pixel = line[static_cast<size_t>(speck.x)];
        pixel = blend(pixel, colours.of(speck.style), std::max(kLeastCoverage, speck.coverage));
    }
    for (const Box& box : drawing.boxes) paintBox(box.x, box.width, colours.of(track.style(box.event)), line);
    // Waits lie over what waits.
    const Rgb waiting = colours.of(EventKind::waiting, 0);
    for (const WaitSpeck& speck : drawing.waits)
        if (speck.x >= 0 && speck.x < width) {
            Rgb& pixel = line[static_cast<size_t>(speck.x)];
            pixel = blend(pixel, waiting, std::max(kLeastCoverage, speck.coverage));
        }
    for (const Box& box : drawing.boxes)
        if (box.waiting > 0) paintBox(box.x, box.waiting, waiting, line);
}

}  // namespace rankscope::gui
