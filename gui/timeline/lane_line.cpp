// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/lane_line.h"

#include <algorithm>
#include <cmath>

namespace rankscope::gui {
namespace {

constexpr float kLeastCoverage = 0.3f;

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
    for (const Box& box : drawing.boxes) {
        const int32_t left = std::clamp(static_cast<int32_t>(std::lround(box.x)), 0, width);
        const int32_t right = std::clamp(static_cast<int32_t>(std::lround(box.x + box.width)), left, width);
        const Rgb fill = colours.of(track.style(box.event));
        std::fill(line.begin() + left, line.begin() + right, fill);
        if (right > left && box.x >= 0) line[static_cast<size_t>(left)] = blend(fill, 0xff000000, 0.35f);
    }
}

}  // namespace rankscope::gui
