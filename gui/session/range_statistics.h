// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collector/store/reader.h"
#include "gui/session/event_details.h"
#include "gui/session/run_info.h"
#include "gui/timeline/activity_bins.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// What a rank's GPU did in a range of time; with idleNs it adds up to the range.
struct RankActivity {
    int32_t rank = 0;
    ActivityTimes times{};
    int64_t idleNs = 0;

    /// Share of the communication that is hidden behind compute; nothing where there is no communication.
    std::optional<double> overlap() const;
};

/// Kernels of one name, counted where they overlap the range; their times are cut at its ends.
struct KernelTotal {
    std::string name;  ///< safe to show
    size_t count = 0;
    int64_t totalNs = 0;    ///< of all ranks
    int64_t longestNs = 0;  ///< of `longest`
    EventRef longest;       ///< its longest one that is drawn
};

struct RangeActivity {
    TimeRange range;
    std::vector<RankActivity> ranks;   ///< those that are loaded
    std::vector<KernelTotal> kernels;  ///< by time, the largest first; at most kMaxRows
    size_t kernelNames = 0;            ///< of which `kernels` shows the first
    int64_t kernelNs = 0;
    bool cancelled = false;  ///< the rest means nothing

    RankActivity sum() const;  ///< of all ranks
};

struct IdleCause {
    std::string cause;  ///< of schema.sql: blocking_call, late_launch…
    int64_t gaps = 0;
    int64_t ns = 0;  ///< of all ranks, cut at the range's ends
};

/// Idle time of a rank by cause, in the order of RangeTables::idle.
struct RankIdle {
    int32_t rank = 0;
    std::vector<int64_t> ns;
};

/// Collectives of one operation and size on one communicator that end or begin in the range.
struct CollectiveTotal {
    std::string operation, communicator;  ///< safe to show
    std::optional<int64_t> bytes;
    int64_t count = 0;
    int64_t transferNs = 0;          ///< from the last arrival to the end, added up
    int64_t waitNs = 0;              ///< of all members, for the last one
    int64_t worstSkewNs = 0;         ///< from the first arrival to the last, of the worst one
    std::optional<EventLink> worst;  ///< a kernel of that one, of its last rank where known
};

/// What trace.db's own tables say of the range.
struct RangeTables {
    std::vector<IdleCause> idle;               ///< by time; empty when the run is not analysed
    std::vector<RankIdle> idleOfRank;          ///< by rank
    std::vector<CollectiveTotal> collectives;  ///< by transfer and wait; at most kMaxRows
    size_t collectiveKinds = 0;                ///< of which `collectives` shows the first
    /// Those that communicate with ranks of which nothing is known: what they wait for these counts as transfer.
    std::set<int32_t> ranksOfUnknownWaits;
};

inline constexpr size_t kMaxRangeRows = 200;

/// From the tracks; may run on any thread, and ends within one rank's time when `cancelled`.
RangeActivity rangeActivity(const RunInfo& run, std::span<const RankTracksPtr> tracks, TimeRange range,
                            const std::atomic<bool>& cancelled);
/// Throws store::Error where the file is damaged.
RangeTables readRangeTables(store::TraceReader& reader, TimeRange range);

/// As plain text, for the clipboard.
std::string rangeText(const RangeActivity& activity, const RangeTables& tables);

/// A cause of trace.db in the words of the report: "the host blocks in a call".
std::string causeText(const std::string& cause);

}  // namespace rankscope::gui
