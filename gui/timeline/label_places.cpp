// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/label_places.h"

#include <algorithm>
#include <span>

namespace rankscope::gui {
namespace {

/// Pixels that labels may take.
struct Room {
    int from = 0, to = 0;
};

/// Adds the labels of lines that are lower than a label, each as near to its line as `room` allows.
void placeLow(std::span<const Row> rows, int origin, Room room, int height,
              const std::function<bool(const Row&)>& first, std::vector<LabelPlace>& labels) {
    if (room.to - room.from < height) return;
    const auto place = [&](const Row& row) {
        const int y = origin + row.top;
        return LabelPlace{&row, y, std::clamp(y - (height - row.height) / 2, room.from, room.to - height)};
    };
    std::vector<LabelPlace> chosen;  // of `first`
    for (const Row& row : rows)
        if (first(row))
            if (const LabelPlace at = place(row); chosen.empty() || at.top >= chosen.back().top + height)
                chosen.push_back(at);
    auto next = chosen.begin();
    int free = room.from;
    for (const Row& row : rows) {
        const LabelPlace at = place(row);
        const bool isChosen = next != chosen.end() && next->row == &row;
        if (isChosen)
            ++next;
        else if (at.top < free || (next != chosen.end() && at.top + height > next->top))
            continue;
        labels.push_back(at);
        free = at.top + height;
    }
}

}  // namespace

std::vector<LabelPlace> placeLabels(const std::vector<Row>& rows, const RowsInSight& sight, int leastHeight,
                                    const std::function<bool(const Row&)>& first) {
    // Rows of which half is in sight.
    const auto from = std::partition_point(
        rows.begin(), rows.end(), [&](const Row& row) { return sight.origin + row.top + row.height / 2 < sight.top; });
    const auto to =
        std::partition_point(from, rows.end(), [&](const Row& row) { return sight.origin + row.top <= sight.bottom; });
    std::vector<LabelPlace> labels;
    int free = sight.top;  // below the last line that is as high as a label
    for (auto row = from; row != to;) {
        if (row->height >= leastHeight) {
            const int y = sight.origin + row->top;
            labels.push_back({&*row, y, y});
            free = y + row->height;
            ++row;
            continue;
        }
        const auto high = std::find_if(row, to, [&](const Row& each) { return each.height >= leastHeight; });
        const Room room{free, high == to ? sight.bottom : std::min(sight.bottom, sight.origin + high->top)};
        placeLow({row, high}, sight.origin, room, leastHeight, first, labels);
        row = high;
    }
    return labels;
}

}  // namespace rankscope::gui
