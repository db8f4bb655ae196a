// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankscope::replay {

/// From CUPTI's correlation ids, which grow with the calls, to rows of a table. Several rows may share one (the nodes
/// of a CUDA graph): they are found in the order in which they were added.
class CorrelationIndex {
  public:
    void add(int64_t correlation, uint32_t row) {
        if (correlation >= 0) m_rows.emplace_back(correlation, row);
    }
    void finish() {
        const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
        if (!std::is_sorted(m_rows.begin(), m_rows.end(), less)) std::stable_sort(m_rows.begin(), m_rows.end(), less);
    }
    /// Rows of a correlation id: [first, last) of pairs whose second is the row. Fast when asked in ascending order.
    auto find(int64_t correlation) {
        const auto less = [](const std::pair<int64_t, uint32_t>& row, int64_t wanted) { return row.first < wanted; };
        auto first = m_rows.begin() + static_cast<std::ptrdiff_t>(m_near);
        if (correlation < 0) return std::pair(m_rows.end(), m_rows.end());
        if (first == m_rows.end() || first->first > correlation ||
            (m_rows.end() - first > 4 && (first + 4)->first < correlation))
            first = std::lower_bound(m_rows.begin(), m_rows.end(), correlation, less);
        while (first != m_rows.end() && first->first < correlation) ++first;
        auto last = first;
        while (last != m_rows.end() && last->first == correlation) ++last;
        m_near = static_cast<size_t>(first - m_rows.begin());
        return std::pair(first, last);
    }

  private:
    std::vector<std::pair<int64_t, uint32_t>> m_rows;
    size_t m_near = 0;
};

}  // namespace rankscope::replay
