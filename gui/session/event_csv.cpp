// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "gui/session/event_names.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

struct Line {
    EventTable table;
    TrackEvent event;
    int64_t row;
};

// The parts of a lane are tracks of their own; its lines are in order of time all the same.
std::vector<Line> linesOf(const Lane& lane, TimeRange range) {
    std::vector<Line> lines;
    for (const Lane::Part& part : lane.parts)
        for (size_t i = part.track.firstEndingAfter(range.beginNs); i < part.track.size() && part.track.startNs(i) < range.endNs; ++i)
            lines.push_back({part.table, part.track.event(i), part.track.rowId(i)});
    std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.event.startNs < b.event.startNs; });
    return lines;
}

}  // namespace

std::string csvField(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string field = "\"";
    for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
    return field + "\"";
}

std::string csvHeader(bool withRun) { return std::string(withRun ? "run," : "") + "rank,lane,table,row,name,start_ns,duration_ns\r\n"; }

size_t writeEventsCsv(std::ostream& out, const RunInfo& run, std::span<const RankTracksPtr> tracks, const CsvScope& scope) {
    size_t written = 0;
    const std::string first = scope.run.empty() ? std::string() : csvField(displayText(scope.run)) + ",";
    for (const RankTracksPtr& rank : tracks) {
        if (!rank || !scope.ranks.contains(rank->rank)) continue;
        for (const Lane& lane : rank->lanes) {
            if (scope.hiddenLanes.contains(lane.label)) continue;
            const std::string place = first + fmt::format("{},{}", rank->rank, csvField(displayText(lane.label, std::string::npos)));
            for (const Line& line : linesOf(lane, scope.range)) {
                const std::string name = csvField(displayText(eventName(run, line.table, line.event), std::string::npos));
                out << fmt::format("{},{},{},{},{},{}\r\n", place, tableName(line.table), line.row, name, line.event.startNs, line.event.durNs);
                ++written;
            }
        }
    }
    return written;
}

}  // namespace rankscope::gui
