// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/overview.h"

#include <algorithm>

namespace rankscope::gui {

void Overview::add(const ActivityView& rank) {
    if (rank.bins == nullptr) return;
    ++m_ranks;
    if (rank.bins->empty() || m_sums.empty()) return;
    TimeAxis axis;
    axis.setWidth(static_cast<double>(m_sums.size()));
    axis.place(m_whole);
    drawActivity(rank, axis, m_columns);
    for (const ActivityColumn& column : m_columns)
        for (size_t a = 0; a < kActivities && column.x >= 0 && static_cast<size_t>(column.x) < m_sums.size(); ++a)
            m_sums[static_cast<size_t>(column.x)][a] += column.shares[a];
}

Overview::Shares Overview::column(size_t index) const noexcept {
    Shares mean{};
    if (m_ranks == 0 || index >= m_sums.size()) return mean;
    for (size_t a = 0; a < kActivities; ++a) mean[a] = m_sums[index][a] / static_cast<float>(m_ranks);
    return mean;
}

TimeRange centredAt(TimeRange visible, int64_t timeNs, TimeRange whole) noexcept {
    const int64_t span = std::min(visible.span(), whole.span());
    const int64_t begin = std::clamp(timeNs - span / 2, whole.beginNs, whole.endNs - span);
    return {begin, begin + span};
}

}  // namespace rankscope::gui
