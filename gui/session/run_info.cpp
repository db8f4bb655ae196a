// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analyzer/text/plain_text.h"
#include "collector/store/bounded_json.h"
#include "gui/session/run_damage.h"
#include "gui/session/short_name.h"
#include "gui/timeline/display_text.h"
#include "gui/timeline/sound_time.h"

namespace rankscope::gui {
namespace {

using store::Statement;

std::string rankLabel(const store::Rank& rank) {
    switch (rank.state) {
        case store::RankState::complete:
            return fmt::format("rank {}", rank.rank);
        default:
            return fmt::format("rank {} ({})", rank.rank, store::toText(rank.state));
    }
}

RunOutline readOutline(store::TraceReader& reader) {
    RunOutline outline;
    std::set<int64_t> hosts;
    for (const store::Host& host : reader.all<store::Host>()) {
        outline.hosts.push_back({host.id, host.name});
        hosts.insert(host.id);
    }
    bool anyUnplaced = false;
    for (const store::Rank& rank : reader.all<store::Rank>()) {
        const bool placed = rank.hostId && hosts.contains(*rank.hostId);
        outline.ranks.push_back({rank.rank, placed ? *rank.hostId : -1, rankLabel(rank)});
        anyUnplaced = anyUnplaced || !placed;
    }
    if (anyUnplaced) outline.hosts.push_back({-1, "unknown host"});
    return outline;
}

// A finding's JSON is Rankscope's own, but the file may be anybody's: what does not fit stays empty.
std::vector<std::string> texts(const nlohmann::json& json, const char* key) {
    std::vector<std::string> values;
    if (const auto found = json.find(key); found != json.end() && found->is_array())
        for (const auto& value : *found)
            if (value.is_string()) values.push_back(value.get<std::string>());
    return values;
}

template <typename Number>
std::vector<Number> numbersIn(const nlohmann::json& json, const char* key) {
    std::vector<Number> values;
    if (const auto found = json.find(key); found != json.end() && found->is_array())
        for (const auto& value : *found)
            if (value.is_number_integer()) values.push_back(value.get<Number>());
    return values;
}

std::string text(const nlohmann::json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void readReport(std::string_view report, FindingInfo& finding) {
    const auto json = store::parseJsonOrNothing(report);
    if (!json.is_object()) return;
    finding.ranks = numbersIn<int32_t>(json, "ranks");
    finding.affectedRanks = numbersIn<int32_t>(json, "affected_ranks");
    finding.cause = text(json, "cause");
    finding.whyInconclusive = text(json, "why_inconclusive");
    finding.fixes = texts(json, "fix");
    finding.changes = texts(json, "changes");
    finding.steps = numbersIn<int32_t>(json, "steps");
    if (const std::vector<int64_t> interval = numbersIn<int64_t>(json, "saving_interval_ns"); interval.size() == 2)
        finding.savingInterval = {interval[0], interval[1]};
    const auto evidence = json.find("evidence");
    if (evidence == json.end() || !evidence->is_object()) return;
    finding.facts = texts(*evidence, "facts");
    const auto rows = evidence->find("rows");
    if (rows == evidence->end() || !rows->is_array()) return;
    for (const auto& row : *rows) {
        if (!row.is_object() || !row.contains("id") || !row["id"].is_number_integer()) continue;
        const bool ranked = row.contains("rank") && row["rank"].is_number_integer();
        finding.evidence.push_back({text(row, "table"), row["id"].get<int64_t>(),
                                    ranked ? row["rank"].get<int32_t>() : -1, text(row, "note")});
    }
}

EventTable eventTable(const std::string& name) {
    for (const EventTable table : {EventTable::kernel, EventTable::memcpy, EventTable::memset, EventTable::nvtx,
                                   EventTable::apiCall, EventTable::ncclCall, EventTable::step})
        if (name == tableName(table)) return table;
    return EventTable::none;
}

// The kernel a statement with one row id (and the rank) names.
EventLink kernelBy(store::TraceReader& reader, const char* sql, const EvidenceLink& link) {
    Statement query(reader.database(), sql);
    query.bind(1, link.rowId).bind(2, int64_t{link.rank});
    if (!query.step() || query.isNull(0)) return {};
    return {EventTable::kernel, query.integer(0), static_cast<int32_t>(query.integer(1))};
}

// What the timeline draws of a row that proves a finding.
void resolve(store::TraceReader& reader, EvidenceLink& link) {
    if (link.table == "collective") {
        link.drawn = kernelBy(
            reader,
            "SELECT kernel_id, rank FROM collective_member WHERE collective_id = ?1 AND (rank = ?2 OR ?2 < 0) LIMIT 1",
            link);
    } else if (link.table == "proxy_op" && reader.hasTable("proxy_op")) {
        link.drawn = kernelBy(reader,
                              "SELECT c.kernel_id, c.rank FROM proxy_op p JOIN nccl_call c ON c.id = p.call_id WHERE "
                              "p.id = ?1 AND ?2 IS NOT NULL",
                              link);
    } else if (link.table == "idle_gap") {
        Statement query(reader.database(), "SELECT start_ns, dur_ns, rank FROM idle_gap WHERE id = ?1");
        query.bind(1, link.rowId);
        if (!query.step()) return;
        link.gap = soundStretch(query.integer(0), query.integer(1));
        link.rank = static_cast<int32_t>(query.integer(2));
    } else {
        link.drawn = {eventTable(link.table), link.rowId, link.rank};
    }
}

std::vector<FindingInfo> readFindings(store::TraceReader& reader) {
    std::vector<FindingInfo> findings;
    Statement query(reader.database(),
                    "SELECT id, diagnosis, title, verdict, severity, saving_ns_per_step, start_ns, end_ns, report_json "
                    "FROM finding ORDER BY id");
    while (query.step()) {
        FindingInfo finding;
        finding.id = query.integer(0);
        finding.diagnosis = query.text(1);
        finding.title = query.text(2);
        finding.verdict = query.text(3);
        finding.severity = query.real(4);
        if (!query.isNull(5)) finding.savingNs = query.integer(5);
        if (!query.isNull(6) && !query.isNull(7) && query.integer(7) > query.integer(6))
            finding.window = soundRange(query.integer(6), query.integer(7));
        readReport(query.text(8), finding);
        for (EvidenceLink& link : finding.evidence) resolve(reader, link);
        findings.push_back(std::move(finding));
    }
    return findings;
}

// Where the ranks stand in the job's grid, as the analysis told it.
void readPlaces(store::TraceReader& reader, RunInfo& info) {
    constexpr size_t kMostDirections = 8;
    const auto places = store::parseJsonOrNothing(reader.meta("analysis.places", ""));
    if (!places.is_object()) return;
    for (OutlineRank& rank : info.outline.ranks) {
        const auto found = places.find(std::to_string(rank.rank));
        if (found == places.end() || !found->is_object()) continue;
        for (const auto& [direction, place] : found->items())
            if (place.is_number_unsigned() && rank.places.size() < kMostDirections &&
                place.get<uint64_t>() < (1u << 20))
                rank.places[displayText(direction)] = place.get<int>();
    }
}

void readClock(store::TraceReader& reader, RunInfo& info) {
    Statement query(reader.database(), "SELECT bound_ns FROM clock_model ORDER BY bound_ns");
    while (query.step()) info.clockBoundNs = query.integer(0);
}

// A lane has room for a word, and the same lane of other ranks should have the same one: numbers of threads serve only
// where nothing else tells a rank's threads apart.
void nameThreadsForLanes(store::TraceReader& reader, const std::vector<store::Thread>& threads, RunInfo& info) {
    std::map<int64_t, int64_t> pids;
    for (const store::Process& process : reader.all<store::Process>()) pids[process.id] = process.pid;
    const auto shortName = [&](const store::Thread& thread) {
        const auto pid = pids.find(thread.processId);
        const bool isMain = thread.tid && pid != pids.end() && pid->second == *thread.tid;
        return isMain ? std::string("main") : thread.name.value_or("");
    };
    std::map<std::pair<int64_t, std::string>, size_t> carriers;
    const auto carriersOf = [&](const store::Thread& thread) -> size_t& {
        return carriers[{thread.rank.value_or(-1), shortName(thread)}];
    };
    for (const store::Thread& thread : threads) ++carriersOf(thread);
    for (const store::Thread& thread : threads) {
        const std::string name = shortName(thread);
        info.threadLanes[thread.id] = !name.empty() && carriersOf(thread) == 1 ? name : info.threadNames[thread.id];
    }
}

void readNames(store::TraceReader& reader, RunInfo& info) {
    for (const store::Stream& stream : reader.all<store::Stream>())
        info.streamNames[stream.id] = fmt::format("stream {}", stream.nativeId);
    const std::vector<store::Thread> threads = reader.all<store::Thread>();
    for (const store::Thread& thread : threads) {
        std::string name = fmt::format("thread {}", thread.tid.value_or(thread.id));
        if (thread.name && !thread.name->empty()) name += " " + *thread.name;
        info.threadNames[thread.id] = std::move(name);
    }
    nameThreadsForLanes(reader, threads, info);
}

// Ids of a damaged file may be anything: what is far beyond the number of strings names nothing. Mangled names are
// turned into readable ones here, once for labels, search and tables.
void readStrings(store::TraceReader& reader, RunInfo& info) {
    const int64_t count = reader.database().integer("SELECT count(*) FROM string");
    Statement query(reader.database(), "SELECT id, text FROM string");
    info.strings.resize(static_cast<size_t>(count) + 1);
    while (query.step())
        if (const int64_t id = query.integer(0); id > 0 && id <= count)
            info.strings[static_cast<size_t>(id)] = text::readableKernelName(query.text(1), std::string::npos);
    info.shortNames = shortNames(info.strings);
}

void readLinkPeaks(store::TraceReader& reader, RunInfo& info) {
    const auto peaks = store::parseJsonOrNothing(reader.meta("link_peaks", ""));
    if (!peaks.is_object()) return;
    if (const auto text = peaks.find("text"); text != peaks.end() && text->is_string())
        info.linkPeaks.push_back("link peaks: " + text->get<std::string>());
    for (std::string& warning : texts(peaks, "warnings")) info.linkPeaks.push_back("warning: " + std::move(warning));
}

void readExtents(store::TraceReader& reader, RunInfo& info) {
    Statement query(reader.database(),
                    "SELECT rank, sum(last_id - first_id + 1) FROM extent WHERE table_name IN ('kernel', 'memcpy', "
                    "'memset', 'nvtx', 'api_call', 'nccl_call') AND last_id >= first_id GROUP BY rank");
    constexpr int64_t kMostEvents = 1'000'000'000'000;  // of a rank; a damaged file may claim any number
    while (query.step()) {
        const int64_t events = std::clamp<int64_t>(query.integer(1), 0, kMostEvents);
        info.eventsOfRank[static_cast<int32_t>(query.integer(0))] = events;
        info.events += events;
    }
}

void readPath(store::TraceReader& reader, RunInfo& info) {
    if (!reader.hasTable("critical_path")) return;
    Statement rows(reader.database(), "SELECT start_ns, dur_ns, rank FROM critical_path ORDER BY start_ns, dur_ns");
    while (rows.step())
        info.path.push_back({static_cast<int32_t>(rows.integer(2)), soundStretch(rows.integer(0), rows.integer(1))});
}

}  // namespace

RunInfo readRunInfo(store::TraceReader& reader) {
    RunInfo info;
    info.file = reader.file();
    info.name = reader.meta("run_name", reader.file());
    info.outline = readOutline(reader);
    info.whole = soundRange(0, reader.metaInteger("duration_ns", 0));
    for (const store::Step& step : reader.all<store::Step>()) {
        const TimeRange range = soundStretch(step.startNs, step.durNs);
        info.steps.push_back({step.rank, step.step, range, step.warmUp});
        info.whole.beginNs = std::min(info.whole.beginNs, range.beginNs);
        info.whole.endNs = std::max(info.whole.endNs, range.endNs);
    }
    info.findings = readFindings(reader);
    info.verdict = reader.meta("analysis.verdict", "");
    for (std::istringstream lines(reader.meta("analysis.not_judged", "")); !lines.eof();) {
        std::string line;
        if (std::getline(lines, line) && !line.empty()) info.notJudged.push_back(std::move(line));
    }
    info.analyzed =
        reader.database().integer("SELECT EXISTS (SELECT 1 FROM attribution)") != 0 || !info.findings.empty();
    for (const store::Loss& loss : reader.all<store::Loss>())
        info.losses.push_back({std::string(store::toText(loss.severity)), loss.message});
    readPath(reader, info);
    readPlaces(reader, info);
    readClock(reader, info);
    readLinkPeaks(reader, info);
    readNames(reader, info);
    readStrings(reader, info);
    readExtents(reader, info);
    info.damage = findRunDamage(reader);
    return info;
}

}  // namespace rankscope::gui
