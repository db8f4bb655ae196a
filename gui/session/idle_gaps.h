// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analyzer/facts/rank_summary.h"
#include "gui/session/rows_by_rank.h"

namespace rankscope::gui {

/// When a device stood still in an analysed step, and why, as the analysis found it.
struct IdleStretch {
    int64_t row = 0;  ///< of idle_gap
    int64_t startNs = 0;
    int64_t durNs = 0;
    facts::IdleCause cause = facts::IdleCause::other;
};

inline constexpr size_t kIdleCauseCount = static_cast<size_t>(facts::IdleCause::dependency) + 1;

/// By start; none where the run is not analysed.
RowsByRank<IdleStretch>::Ranks readIdleGaps(store::TraceReader& reader);

}  // namespace rankscope::gui
