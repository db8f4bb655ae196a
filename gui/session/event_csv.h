// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "gui/session/run_info.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// Which events of a run go into a table.
struct CsvScope {
    TimeRange range;  ///< those that overlap it, and marks at its ends; their times are not cut
    std::set<int32_t> ranks;
    std::set<std::string> hiddenLanes;  ///< by label
    std::string run;                    ///< first column of every line; left out when empty
};

/// Column names, as a line. RFC 4180: fields with commas or quotes are quoted, lines end in CR LF.
std::string csvHeader(bool withRun);
/// One line an event: rank, lane, table and row of trace.db, name, start_ns and duration_ns; by rank, lane and start.
/// Events that no lane has room for follow the rank's lanes; a negative duration is written as recorded. Returns the
/// number of events.
size_t writeEventsCsv(std::ostream& out, const RunInfo& run, std::span<const RankTracksPtr> tracks,
                      const CsvScope& scope);

/// A field of a line.
std::string csvField(std::string_view text);

}  // namespace rankscope::gui
