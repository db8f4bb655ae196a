// SPDX-License-Identifier: Apache-2.0
#include "gui/session/activity_lines.h"

#include <cstring>
#include <utility>

#include "analyzer/facts/activity_line.h"
#include "collector/store/error.h"
#include "gui/timeline/sound_time.h"

namespace rankscope::gui {

namespace {

using facts::ActivityLine;

constexpr bool isSame(Activity drawn, facts::Activity stored) {
    return static_cast<int>(drawn) == static_cast<int>(stored);
}
static_assert(kFarthestNs == ActivityLine::kFarthestNs, "what is drawn is what is left");
static_assert(kActivities == ActivityLine::kKinds && isSame(Activity::compute, facts::Activity::compute) &&
              isSame(Activity::overlapped, facts::Activity::overlapped) &&
              isSame(Activity::waiting, facts::Activity::waiting) &&
              isSame(Activity::transfer, facts::Activity::transfer) &&
              isSame(Activity::memory, facts::Activity::memory));

void read(store::TraceReader& reader, std::map<int32_t, ActivityBins>& lines) {
    if (!reader.hasTable("rank_activity")) return;
    store::Statement rows(
        reader.database(),
        "SELECT rank, start_ns, bin_ns, shares FROM rank_activity WHERE rank IN (SELECT rank FROM rank)");
    std::vector<ActivityLine::Bin> bins(ActivityLine::kBins);
    while (rows.step()) {
        const std::span<const uint8_t> shares = rows.bytes(3);
        const int64_t rank = rows.integer(0), startNs = rows.integer(1), binNs = rows.integer(2);
        if (rows.isBytes(3) && shares.empty() && std::in_range<int32_t>(rank)) {  // the device did nothing
            lines.try_emplace(static_cast<int32_t>(rank));
            continue;
        }
        if (shares.size() != bins.size() * sizeof(ActivityLine::Bin) || !std::in_range<int32_t>(rank) || binNs < 1 ||
            binNs > kFarthestNs || startNs < -kFarthestNs || startNs > kFarthestNs)
            continue;
        std::memcpy(bins.data(), shares.data(), shares.size());
        lines.insert_or_assign(static_cast<int32_t>(rank), ActivityBins(startNs, binNs, bins));
    }
}

}  // namespace

std::map<int32_t, ActivityBins> readActivityLines(store::TraceReader& reader) {
    std::map<int32_t, ActivityBins> lines;
    try {
        read(reader, lines);
    } catch (const store::LockedFile&) {
        throw;
    } catch (const store::Error&) {
        // A damaged page: the lines in front of it are as good as any.
    }
    return lines;
}

}  // namespace rankscope::gui
