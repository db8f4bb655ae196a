// SPDX-License-Identifier: Apache-2.0
#include "gui/session/idle_gaps.h"

#include <algorithm>

namespace rankscope::gui {
namespace {

facts::IdleCause causeOf(std::string_view text) {
    for (size_t cause = 0; cause < kIdleCauseCount; ++cause)
        if (facts::toText(static_cast<facts::IdleCause>(cause)) == text) return static_cast<facts::IdleCause>(cause);
    return facts::IdleCause::other;
}

}  // namespace

// Rows without sound times are no stretch of a lane; the same file's damage is told by what reads its events.
RowsByRank<IdleStretch>::Ranks readIdleGaps(store::TraceReader& reader) {
    RowsByRank<IdleStretch>::Ranks ranks;
    store::Statement rows(reader.database(), "SELECT id, rank, start_ns, dur_ns, cause FROM idle_gap ORDER BY id");
    while (rows.step())
        if (rows.isInteger(2) && rows.isInteger(3) && rows.integer(3) >= 0)
            ranks[static_cast<int32_t>(rows.integer(1))].push_back(
                {rows.integer(0), rows.integer(2), rows.integer(3), causeOf(rows.text(4))});
    for (auto& [rank, gaps] : ranks) {
        std::ranges::stable_sort(gaps, {}, &IdleStretch::startNs);
        gaps.shrink_to_fit();
    }
    return ranks;
}

}  // namespace rankscope::gui
