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

// Marks last 0 ns: one at either end is in view.
bool isIn(const TrackEvent& event, TimeRange range) {
    const int64_t endNs = event.startNs + event.durNs;
    if (event.durNs == 0) return event.startNs >= range.beginNs && event.startNs <= range.endNs;
    return endNs > range.beginNs && event.startNs < range.endNs;
}

// The parts of a lane are tracks of their own; its lines are in order of time all the same.
std::vector<Line> linesOf(const Lane& lane, TimeRange range) {
    std::vector<Line> lines;
    for (const Lane::Part& part : lane.parts)
        for (size_t i = part.track.firstEndingAfter(range.beginNs - 1);
             i < part.track.size() && part.track.startNs(i) <= range.endNs; ++i)
            if (const TrackEvent event = part.track.event(i); isIn(event, range))
                lines.push_back({part.table, event, part.track.rowId(i)});
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& a, const Line& b) { return a.event.startNs < b.event.startNs; });
    return lines;
}

std::vector<Line> linesOf(const UndrawnEvents& undrawn, TimeRange range) {
    std::vector<Line> lines;
    for (const TrackEvent& event : undrawn.events)
        if (isIn(event, range)) lines.push_back({undrawn.table, event, undrawn.firstRow + event.row});
    return lines;
}

class Writer {
  public:
    Writer(std::ostream& out, const RunInfo& run, std::string first)
        : m_out(out), m_run(run), m_first(std::move(first)) {}

    void write(const RankTracks& rank, const std::string& lane, const std::vector<Line>& lines) {
        const std::string place =
            m_first + fmt::format("{},{}", rank.rank, csvField(displayText(lane, std::string::npos)));
        for (const auto& [table, event, row] : lines) {
            const std::string name = csvField(displayText(eventName(m_run, table, event), std::string::npos));
            m_out << fmt::format("{},{},{},{},{},{}\r\n", place, tableName(table), row, name, event.startNs,
                                 rank.recordedDurNs(table, row, event.durNs));
            ++m_written;
        }
    }

    size_t written() const noexcept { return m_written; }

  private:
    std::ostream& m_out;
    const RunInfo& m_run;
    std::string m_first;
    size_t m_written = 0;
};

}  // namespace

std::string csvField(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string field = "\"";
    for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
    return field + "\"";
}

std::string csvHeader(bool withRun) {
    return std::string(withRun ? "run," : "") + "rank,lane,table,row,name,start_ns,duration_ns\r\n";
}

size_t writeEventsCsv(std::ostream& out, const RunInfo& run, std::span<const RankTracksPtr> tracks,
                      const CsvScope& scope) {
    Writer writer(out, run, scope.run.empty() ? std::string() : csvField(displayText(scope.run)) + ",");
    for (const RankTracksPtr& rank : tracks) {
        if (!rank || !scope.ranks.contains(rank->rank)) continue;
        for (const Lane& lane : rank->lanes)  // a range on the device is the host's once more
            if (lane.kind != LaneKind::deviceRanges && !scope.hiddenLanes.contains(lane.label))
                writer.write(*rank, lane.label, linesOf(lane, scope.range));
        for (const UndrawnEvents& undrawn : rank->undrawn)
            if (undrawn.table != EventTable::nvtxOnDevice && !scope.hiddenLanes.contains(undrawn.lane))
                writer.write(*rank, undrawn.lane.empty() ? "not drawn" : undrawn.lane + " (not drawn)",
                             linesOf(undrawn, scope.range));
    }
    return writer.written();
}

}  // namespace rankscope::gui
