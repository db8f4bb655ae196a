// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/label_places.h"

#include <algorithm>

namespace rankscope::gui {

std::vector<LabelPlace> placeLabels(const std::vector<Row>& rows, const RowsInSight& sight, int leastHeight,
                                    const std::function<bool(const Row&)>& first) {
    // Rows of which half is in sight.
    const auto from = std::partition_point(
        rows.begin(), rows.end(), [&](const Row& row) { return sight.origin + row.top + row.height / 2 < sight.top; });
    const auto to =
        std::partition_point(from, rows.end(), [&](const Row& row) { return sight.origin + row.top <= sight.bottom; });
    const int lowest = std::max(sight.top, sight.bottom - leastHeight);
    const auto place = [&](const Row& row) {
        const int y = sight.origin + row.top;
        if (row.height >= leastHeight) return LabelPlace{&row, y, y};
        return LabelPlace{&row, y, std::clamp(y - (leastHeight - row.height) / 2, sight.top, lowest)};
    };
    std::vector<LabelPlace> chosen;  // of `first`
    for (auto row = from; row != to; ++row)
        if (row->height < leastHeight && first(*row))
            if (const LabelPlace at = place(*row); chosen.empty() || at.top >= chosen.back().top + leastHeight)
                chosen.push_back(at);
    std::vector<LabelPlace> labels;
    auto next = chosen.begin();
    int freeFrom = sight.top;
    for (auto row = from; row != to; ++row) {
        const LabelPlace at = place(*row);
        const bool isLow = row->height < leastHeight, isChosen = next != chosen.end() && next->row == &*row;
        if (isChosen) ++next;
        const int end = at.top + std::max(row->height, leastHeight);
        if (isLow && !isChosen && (at.top < freeFrom || (next != chosen.end() && end > next->top))) continue;
        labels.push_back(at);
        freeFrom = end;
    }
    return labels;
}

}  // namespace rankscope::gui
