// SPDX-License-Identifier: Apache-2.0
#include "gui/session/activity_lines.h"

#include <cstring>

#include "analyzer/facts/activity_line.h"
#include "gui/timeline/sound_time.h"

namespace rankscope::gui {

std::map<int32_t, ActivityBins> readActivityLines(store::TraceReader& reader) {
    using facts::ActivityLine;
    static_assert(ActivityLine::kKinds == kActivities, "in the order of Activity");
    std::map<int32_t, ActivityBins> lines;
    if (!reader.hasTable("rank_activity")) return lines;
    store::Statement rows(reader.database(), "SELECT rank, start_ns, bin_ns, shares FROM rank_activity");
    std::vector<ActivityLine::Bin> bins(ActivityLine::kBins);
    while (rows.step()) {
        const std::span<const uint8_t> shares = rows.bytes(3);
        const int64_t startNs = rows.integer(1), binNs = rows.integer(2);
        if (shares.size() != bins.size() * sizeof(ActivityLine::Bin) || binNs < 1 || binNs > kFarthestNs ||
            startNs < -kFarthestNs || startNs > kFarthestNs)
            continue;
        std::memcpy(bins.data(), shares.data(), shares.size());
        lines.insert_or_assign(static_cast<int32_t>(rows.integer(0)), ActivityBins(startNs, binNs, bins));
    }
    return lines;
}

}  // namespace rankscope::gui
