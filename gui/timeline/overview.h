// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// What ranks together do in a time, column by column: all of them over the whole run in the minimap, those of a group
/// on its line. A rank costs the columns, however many events it has.
class Overview {
  public:
    using Shares = std::array<float, kActivities>;

    Overview() = default;
    Overview(TimeRange whole, size_t columns) : m_whole(whole), m_sums(columns, Shares{}) {}

    void add(const ActivityView& rank);
    TimeRange whole() const noexcept { return m_whole; }
    size_t columns() const noexcept { return m_sums.size(); }
    size_t ranks() const noexcept { return m_ranks; }
    /// Mean share of each activity over the ranks added, 0..1.
    Shares column(size_t index) const noexcept;

  private:
    TimeRange m_whole;
    size_t m_ranks = 0;
    std::vector<Shares> m_sums;
    std::vector<ActivityColumn> m_columns;  // of the rank being added
};

/// `visible`, moved so that `timeNs` is in its middle, or as near to it as `whole` allows.
TimeRange centredAt(TimeRange visible, int64_t timeNs, TimeRange whole) noexcept;

}  // namespace rankscope::gui
