// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/overview.h"

#include <algorithm>

namespace rankscope::gui {

void Overview::add(const RankTracks& rank) {
    ++m_ranks;
    if (rank.activity.empty() || m_sums.empty()) return;
    const double nsPerColumn = static_cast<double>(m_whole.span()) / static_cast<double>(m_sums.size());
    int64_t begin = m_whole.beginNs;
    for (size_t i = 0; i < m_sums.size(); ++i) {
        const int64_t end = m_whole.beginNs + static_cast<int64_t>(static_cast<double>(i + 1) * nsPerColumn);
        const Shares shares = rank.activity.shares({begin, end});
        for (size_t a = 0; a < kActivities; ++a) m_sums[i][a] += shares[a];
        begin = end;
    }
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
