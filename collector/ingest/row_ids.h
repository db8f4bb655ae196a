// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "collector/ingest/rank_summary.h"

namespace rankscope::collector {

/// Row ids of the event tables: 1, 2… over all ranks in their order, so that the rows of a rank are one range.
class RowIds {
  public:
    explicit RowIds(const std::vector<RankSummary>& summaries) {
        std::array<int64_t, RankSummary::kEventTables> next;
        next.fill(1);
        for (const RankSummary& summary : summaries) {
            m_first.push_back(next);
            for (size_t table = 0; table < next.size(); ++table) next[table] += summary.rowCounts[table];
        }
    }

    /// Id of the rank's first row in a table.
    int64_t first(size_t summary, size_t table) const { return m_first[summary][table]; }
    int64_t kernel(size_t summary, int64_t index) const { return first(summary, RankSummary::kKernelTable) + index; }
    int64_t ncclCall(size_t summary, int64_t index) const {
        return first(summary, RankSummary::kNcclCallTable) + index;
    }

  private:
    std::vector<std::array<int64_t, RankSummary::kEventTables>> m_first;
};

}  // namespace rankscope::collector
