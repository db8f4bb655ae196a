// SPDX-License-Identifier: Apache-2.0
#include "gui/session/range_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyzer/facts/rank_summary.h"
#include "gui/session/column_text.h"
#include "gui/session/event_names.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

using store::Statement;

// Kernels by name and kind, over all ranks.
class KernelTotals {
  public:
    KernelTotals(const RunInfo& run, TimeRange range, const std::atomic<bool>& cancelled)
        : m_run(run), m_range(range), m_cancelled(cancelled) {}

    bool add(const RankTracks& tracks) {
        for (uint32_t lane = 0; lane < tracks.lanes.size(); ++lane) {
            const auto& parts = tracks.lanes[lane].parts;
            for (uint32_t part = 0; part < parts.size(); ++part)
                if (parts[part].table == EventTable::kernel && !add(parts[part].track, {tracks.rank, lane, part, 0}))
                    return false;
        }
        for (const UndrawnEvents& undrawn : tracks.undrawn)
            if (undrawn.table == EventTable::kernel) add(undrawn.events);
        return !m_cancelled;
    }

    void finish(RangeActivity& result) {
        result.kernelNames = m_totals.size();
        for (auto& [key, total] : m_totals) {
            result.kernelNs += total.totalNs;
            result.kernels.push_back(std::move(total));
            result.kernels.back().name = stringText(m_run, static_cast<int64_t>(key >> 1));
        }
        std::sort(result.kernels.begin(), result.kernels.end(), [](const KernelTotal& a, const KernelTotal& b) {
            return a.totalNs != b.totalNs ? a.totalNs > b.totalNs : a.name < b.name;
        });
        if (result.kernels.size() > kMaxRangeRows) result.kernels.resize(kMaxRangeRows);
    }

  private:
    // Nothing leads to these: they cannot be the longest.
    void add(const std::vector<TrackEvent>& undrawn) {
        for (const TrackEvent& event : undrawn) {
            const int64_t endNs = event.startNs + event.durNs;
            if (endNs <= m_range.beginNs || event.startNs >= m_range.endNs) continue;
            const bool communication = event.kind == EventKind::communication;
            KernelTotal& total = m_totals[uint64_t{event.name} << 1 | communication];
            ++total.count;
            total.totalNs += std::min(endNs, m_range.endNs) - std::max(event.startNs, m_range.beginNs);
        }
    }

    bool add(const Track& track, EventRef ref) {
        const size_t first = track.firstEndingAfter(m_range.beginNs);
        for (size_t i = first; i < track.size() && track.startNs(i) < m_range.endNs; ++i) {
            if ((i - first) % kEventsBetweenChecks == 0 && m_cancelled) return false;
            const bool communication = track.kind(i) == EventKind::communication;
            KernelTotal& total = m_totals[uint64_t{track.name(i)} << 1 | communication];
            ++total.count;
            total.totalNs += std::min(track.endNs(i), m_range.endNs) - std::max(track.startNs(i), m_range.beginNs);
            if (track.durNs(i) <= total.longestNs && total.longest.valid()) continue;
            total.longestNs = track.durNs(i);
            ref.index = static_cast<uint32_t>(i);
            total.longest = ref;
        }
        return true;
    }

    const RunInfo& m_run;
    TimeRange m_range;
    const std::atomic<bool>& m_cancelled;
    std::unordered_map<uint64_t, KernelTotal> m_totals;
};

std::vector<IdleCause> readIdle(store::TraceReader& reader, TimeRange range) {
    std::vector<IdleCause> causes;
    // Added up as real numbers: a damaged file cannot make sum() fail by overflow.
    Statement query(reader.database(),
                    "SELECT cause, count(*), total(min(start_ns + dur_ns, ?2) - max(start_ns, ?1)) AS ns FROM idle_gap "
                    "WHERE start_ns < ?2 AND start_ns + dur_ns > ?1 GROUP BY cause ORDER BY ns DESC LIMIT 50");
    query.bind(1, range.beginNs).bind(2, range.endNs);
    while (query.step()) causes.push_back({std::string(query.text(0)), query.integer(1), query.integer(2)});
    return causes;
}

void readIdleOfRanks(store::TraceReader& reader, TimeRange range, RangeTables& tables) {
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < tables.idle.size(); ++i) places[tables.idle[i].cause] = i;
    Statement query(reader.database(),
                    "SELECT rank, cause, total(min(start_ns + dur_ns, ?2) - max(start_ns, ?1)) FROM idle_gap WHERE "
                    "start_ns < ?2 AND start_ns + dur_ns > ?1 GROUP BY rank, cause ORDER BY rank LIMIT 500000");
    query.bind(1, range.beginNs).bind(2, range.endNs);
    while (query.step()) {
        const auto place = places.find(std::string(query.text(1)));
        if (place == places.end()) continue;
        const auto rank = static_cast<int32_t>(query.integer(0));
        if (tables.idleOfRank.empty() || tables.idleOfRank.back().rank != rank)
            tables.idleOfRank.push_back({rank, std::vector<int64_t>(tables.idle.size())});
        tables.idleOfRank.back().ns[place->second] = query.integer(2);
    }
}

std::string communicatorName(store::TraceReader& reader, int64_t id) {
    Statement query(reader.database(), "SELECT name FROM communicator WHERE id = ?1");
    query.bind(1, id);
    const bool named = query.step() && !query.isNull(0) && !query.text(0).empty();
    Statement members(
        reader.database(),
        "SELECT rank FROM communicator_member WHERE communicator_id = ?1 ORDER BY comm_rank LIMIT 100000");
    members.bind(1, id);
    std::vector<int32_t> ranks;
    while (members.step()) ranks.push_back(static_cast<int32_t>(members.integer(0)));
    return (named ? displayText(query.text(0), 60) : fmt::format("#{}", id)) +
           (ranks.empty() ? "" : ": ranks " + displayText(ranksText(ranks), 60));
}

// The kernel that shows best why a collective took long: its last rank's, or any.
std::optional<EventLink> kernelOf(store::TraceReader& reader, int64_t collective) {
    Statement query(
        reader.database(),
        "SELECT m.kernel_id, m.rank FROM collective_member m JOIN collective c ON c.id = m.collective_id WHERE c.id = "
        "?1 AND m.kernel_id IS NOT NULL ORDER BY m.rank IS NOT c.last_rank, m.arrival_ns DESC LIMIT 1");
    query.bind(1, collective);
    if (!query.step()) return std::nullopt;
    return EventLink{EventTable::kernel, query.integer(0), static_cast<int32_t>(query.integer(1))};
}

void readCollectives(store::TraceReader& reader, TimeRange range, RangeTables& tables) {
    // SQLite takes the other columns of a row with max() from the row that has it: id is that of the worst.
    Statement query(
        reader.database(),
        "SELECT c.communicator_id, c.op, c.bytes, count(*), total(c.transfer_ns) AS transfer, total((SELECT "
        "total(m.wait_ns) FROM collective_member m WHERE m.collective_id = c.id)) AS wait, "
        "max(ifnull(c.last_arrival_ns - c.first_arrival_ns, 0)), c.id FROM collective c WHERE c.first_arrival_ns < ?2 "
        "AND c.end_ns > ?1 GROUP BY c.communicator_id, c.op, c.bytes ORDER BY transfer + wait DESC");
    query.bind(1, range.beginNs).bind(2, range.endNs);
    for (; query.step(); ++tables.collectiveKinds) {
        if (tables.collectives.size() >= kMaxRangeRows) continue;
        CollectiveTotal total;
        total.operation = displayText(query.text(1));
        total.communicator = communicatorName(reader, query.integer(0));
        if (!query.isNull(2)) total.bytes = query.integer(2);
        total.count = query.integer(3);
        total.transferNs = query.integer(4);
        total.waitNs = query.integer(5);
        total.worstSkewNs = query.integer(6);
        total.worst = kernelOf(reader, query.integer(7));
        tables.collectives.push_back(std::move(total));
    }
}

void readUnknownWaits(store::TraceReader& reader, TimeRange range, RangeTables& tables) {
    Statement query(reader.database(),
                    "SELECT DISTINCT rank FROM collective_member WHERE wait_ns IS NULL AND kernel_id IS NOT NULL AND "
                    "arrival_ns < ?2 AND end_ns > ?1 LIMIT 100000");
    query.bind(1, range.beginNs).bind(2, range.endNs);
    while (query.step()) tables.ranksOfUnknownWaits.insert(static_cast<int32_t>(query.integer(0)));
}

std::string share(int64_t ns, int64_t whole) {
    return fmt::format("{} ({:.1f} %)", durationText(ns),
                       whole > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(whole) : 0.0);
}

}  // namespace

std::optional<double> RankActivity::overlap() const {
    const auto hidden = static_cast<double>(times[static_cast<size_t>(Activity::overlapped)]),
               exposed = static_cast<double>(times[static_cast<size_t>(Activity::waiting)] +
                                             times[static_cast<size_t>(Activity::transfer)]);
    return hidden + exposed > 0 ? std::optional(hidden / (hidden + exposed)) : std::nullopt;
}

RankActivity RangeActivity::sum() const {
    RankActivity sum;
    for (const RankActivity& rank : ranks) {
        for (size_t a = 0; a < kActivities; ++a) sum.times[a] += rank.times[a];
        sum.idleNs += rank.idleNs;
    }
    return sum;
}

RangeActivity rangeActivity(const RunInfo& run, std::span<const RankTracksPtr> tracks, TimeRange range,
                            const std::atomic<bool>& cancelled) {
    RangeActivity result;
    result.range = range;
    KernelTotals totals(run, range, cancelled);
    for (const RankTracksPtr& rank : tracks) {
        RankActivity activity{rank->rank, activityIn(rank->deviceTracks(), range), range.span()};
        for (const int64_t ns : activity.times) activity.idleNs -= ns;
        result.ranks.push_back(activity);
        if (cancelled || !totals.add(*rank)) {
            result.cancelled = true;
            return result;
        }
    }
    totals.finish(result);
    return result;
}

RangeTables readRangeTables(store::TraceReader& reader, TimeRange range) {
    RangeTables tables;
    tables.idle = readIdle(reader, range);
    readIdleOfRanks(reader, range, tables);
    readCollectives(reader, range, tables);
    readUnknownWaits(reader, range, tables);
    return tables;
}

std::string causeText(const std::string& cause) {
    return std::string(facts::inWords(cause));
}

std::string rangeText(const RangeActivity& activity, const RangeTables& tables) {
    const int64_t whole = activity.range.span();
    std::string text = fmt::format("{} from {} to {}\n\n", durationText(whole), timeText(activity.range.beginNs),
                                   timeText(activity.range.endNs));
    for (const RankActivity& rank : activity.ranks) {
        const bool isUnknown = tables.ranksOfUnknownWaits.contains(rank.rank);
        text += fmt::format(
            "rank {}: compute {}, compute and communication {}, waiting {}{}, transfer {}{}, memory {}, idle {}\n",
            rank.rank, share(rank.times[0], whole), share(rank.times[1], whole), isUnknown ? "at least " : "",
            share(rank.times[2], whole), isUnknown ? "at most " : "", share(rank.times[3], whole),
            share(rank.times[4], whole), share(rank.idleNs, whole));
    }
    if (!tables.idle.empty()) text += "\nidle by cause, all ranks\n";
    for (const IdleCause& cause : tables.idle)
        text += fmt::format("{}: {} in {} gaps\n", causeText(cause.cause), durationText(cause.ns), cause.gaps);
    for (const RankIdle& rank : tables.idleOfRank) {
        std::string causes;
        for (size_t i = 0; i < rank.ns.size(); ++i)
            if (rank.ns[i] > 0)
                causes += fmt::format("{}{} {}", causes.empty() ? "" : ", ", causeText(tables.idle[i].cause),
                                      durationText(rank.ns[i]));
        text += fmt::format("rank {}: {}\n", rank.rank, causes);
    }
    text += "\nkernels\n";
    for (const KernelTotal& kernel : activity.kernels)
        text += fmt::format("{} in {} times, longest {}: {}\n", durationText(kernel.totalNs), kernel.count,
                            durationText(kernel.longestNs), kernel.name);
    if (activity.kernelNames > activity.kernels.size())
        text += fmt::format("and {} further names\n", activity.kernelNames - activity.kernels.size());
    text += "\ncollectives\n";
    for (const CollectiveTotal& total : tables.collectives)
        text +=
            fmt::format("{} {} on {}: {} times, transfer {}, waited {}, worst skew {}\n", total.operation,
                        total.bytes ? bytesText(*total.bytes) : "of unknown size", total.communicator, total.count,
                        durationText(total.transferNs), durationText(total.waitNs), durationText(total.worstSkewNs));
    return text;
}

}  // namespace rankscope::gui
