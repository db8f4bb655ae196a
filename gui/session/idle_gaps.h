// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "analyzer/facts/rank_summary.h"
#include "collector/store/reader.h"

namespace rankscope::gui {

/// When a device stood still in an analysed step, and why, as the analysis found it.
struct IdleStretch {
    int64_t row = 0;  ///< of idle_gap
    int64_t startNs = 0;
    int64_t durNs = 0;
    facts::IdleCause cause = facts::IdleCause::other;
};

inline constexpr size_t kIdleCauseCount = static_cast<size_t>(facts::IdleCause::dependency) + 1;

/// The idle gaps of all ranks: the table has no index by rank, so that one walk serves all. Any thread; the first that
/// asks reads for all.
class IdleGaps {
  public:
    /// A rank's gaps, by start; none where the run is not analysed. Throws store::Error where the file is damaged.
    std::span<const IdleStretch> of(store::TraceReader& reader, int32_t rank);

  private:
    void read(store::TraceReader& reader);

    std::mutex m_mutex;  // guards m_isRead; what is read does not change
    bool m_isRead = false;
    std::map<int32_t, std::vector<IdleStretch>> m_gaps;
};

}  // namespace rankscope::gui
