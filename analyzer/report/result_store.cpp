// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "analyzer/facts/places.h"
#include "analyzer/replay/path_stretches.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/lists.h"
#include "collector/store/sqlite.h"

namespace rankscope::report {
namespace {

using store::Statement;

template <typename T>
Statement& bindKnown(Statement& insert, int index, const std::optional<T>& value) {
    return value ? insert.bind(index, *value) : insert.bindNull(index);
}

void storeAttribution(store::Database& db, const job::Analysis& analysis) {
    Statement insert(db, "INSERT INTO attribution VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    for (const facts::RankSummary& rank : analysis.ranks) {
        const facts::RankFacts* facts = analysis.facts.findRank(rank.rank);
        for (size_t i = 0; i < rank.steps.size(); ++i) {
            const facts::Attribution& a = rank.steps[i];
            insert.bind(1, int64_t{rank.rank})
                .bind(2, int64_t{facts->steps[i].step})
                .bind(3, a.stepNs)
                .bind(4, a.computeNs)
                .bind(5, a.exposedCommNs())
                .bind(6, a.exposedWaitNs)
                .bind(7, a.exposedTransferNs)
                .bind(8, a.overlappedCommNs)
                .bind(9, a.memoryNs)
                .bind(10, a.idleNs)
                .run();
        }
    }
}

void storeGaps(store::Database& db, const job::Analysis& analysis) {
    Statement insert(db, "INSERT INTO idle_gap VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::IdleGap& gap : rank.idleGaps)
            insert.bind(1, gap.id)
                .bind(2, int64_t{rank.rank})
                .bind(3, int64_t{gap.step})
                .bind(4, gap.startNs)
                .bind(5, gap.durNs)
                .bind(6, toText(gap.cause))
                .run();
}

bool hasTable(store::Database& db, std::string_view table) {
    Statement query(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1");
    return query.bind(1, table).step();
}

/// When the device worked on what a task names, as `db` has it.
replay::RecordedTimes recordedTimes(store::Database& db) {
    const auto lookUp = [&db](const char* table) {
        return std::make_shared<Statement>(db, std::string("SELECT start_ns, dur_ns FROM ") + table + " WHERE id = ?1");
    };
    return [kernels = lookUp("kernel"), copies = lookUp("memcpy"),
            sets = lookUp("memset")](const replay::TaskInfo& task) -> std::optional<replay::RecordedTime> {
        Statement& rows = task.kind == replay::TaskKind::copy  ? *copies
                          : task.kind == replay::TaskKind::set ? *sets
                                                               : *kernels;
        rows.reset();
        if (!rows.bind(1, int64_t{task.row}).step()) return std::nullopt;
        return replay::RecordedTime{rows.integer(0), rows.integer(0) + rows.integer(1)};
    };
}

/// A trace that is older than the table goes without.
void storePath(store::Database& db, const job::Analysis& analysis) {
    if (!hasTable(db, "critical_path")) return;
    db.execute("DELETE FROM critical_path");
    if (!analysis.replay.available()) return;
    Statement insert(db, "INSERT INTO critical_path VALUES (?1, ?2, ?3)");
    for (const replay::PathStretch& stretch : replay::pathStretches(analysis.replay.graph, analysis.replay.unchanged,
                                                                    analysis.replay.steps, recordedTimes(db)))
        insert.bind(1, stretch.startNs).bind(2, stretch.endNs - stretch.startNs).bind(3, int64_t{stretch.rank}).run();
}

/// A trace that is older than the table goes without.
void storeActivity(store::Database& db, const job::Analysis& analysis) {
    if (!hasTable(db, "rank_activity")) return;
    db.execute("DELETE FROM rank_activity");
    Statement insert(db, "INSERT INTO rank_activity VALUES (?1, ?2, ?3, ?4)");
    for (const facts::RankSummary& rank : analysis.ranks) {
        const facts::ActivityLine& line = rank.activity;
        const std::span shares(reinterpret_cast<const uint8_t*>(line.bins.data()),
                               line.bins.size() * sizeof(facts::ActivityLine::Bin));
        insert.bind(1, int64_t{rank.rank}).bind(2, line.startNs).bind(3, line.binNs).bindBytes(4, shares).run();
    }
}

/// A trace that is older than the table goes without.
void storeFits(store::Database& db, const job::Analysis& analysis, const Report& report) {
    if (!hasTable(db, "cost_fit")) return;
    db.execute("DELETE FROM cost_fit");
    Statement insert(db, "INSERT INTO cost_fit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    for (const costs::CostFit& fit : analysis.cost.lines()) {
        const std::string group = groupText(report, fit.communicatorId);
        insert.bind(1, fit.communicatorId).bind(2, store::toText(fit.op));
        insert.bind(3, fit.alphaNs).bind(4, fit.betaNsPerByte);
        bindKnown(insert, 5, fit.ceiling).bind(6, std::string_view(fit.source)).bind(7, std::string_view(group)).run();
    }
}

void storeFinding(store::Database& db, const Report& report, const job::Finding& f, int64_t id) {
    Statement insert(db, "INSERT INTO finding VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    const char* verdicts[] = {"found", "inconclusive", "note"};
    const std::string json = renderFindingJson(report, f);
    insert.bind(1, id).bind(2, std::string_view(f.id)).bind(3, std::string_view(f.title));
    insert.bind(4, std::string_view(verdicts[static_cast<size_t>(f.verdict)])).bind(5, f.severity);
    const bool hasWindow = f.windowEndNs > f.windowStartNs;
    const auto ifSeen = [&](int64_t ns) { return hasWindow ? std::optional(ns) : std::nullopt; };
    bindKnown(insert, 6, f.savingNs ? std::optional(static_cast<int64_t>(f.savingNs->expected)) : std::nullopt);
    bindKnown(insert, 7, ifSeen(f.windowStartNs));
    bindKnown(insert, 8, ifSeen(f.windowEndNs)).bind(9, std::string_view(json)).run();
    Statement evidence(db, "INSERT OR IGNORE INTO finding_evidence VALUES (?1, ?2, ?3, ?4, ?5)");
    for (const job::EvidenceRow& row : f.evidence.rows) {
        evidence.bind(1, id).bind(2, std::string_view(row.table)).bind(3, row.id);
        bindKnown(evidence, 4, row.rank >= 0 ? std::optional<int64_t>(row.rank) : std::nullopt)
            .bind(5, std::string_view(row.note))
            .run();
    }
}

/// Stores what the window says above its findings, in the words of the report.
void storeVerdict(store::Database& db, const Report& report) {
    const std::string lines = text::joined(notJudgedLines(report.notJudged), "\n");
    Statement insert(db, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)");
    insert.bind(1, std::string_view("analysis.verdict")).bind(2, std::string_view(verdictText(report))).run();
    insert.bind(1, std::string_view("analysis.not_judged")).bind(2, std::string_view(lines)).run();
}

/// Stores where the ranks stand in the job's grid: {"3": {"dp": 1, "tp": 0}}.
void storePlaces(store::Database& db, const job::Analysis& analysis) {
    nlohmann::json places = nlohmann::json::object();
    for (const auto& [rank, of] : facts::placesOf(analysis.facts, analysis.layout)) places[std::to_string(rank)] = of;
    const std::string text = places.dump();
    Statement(db, "INSERT OR REPLACE INTO meta VALUES ('analysis.places', ?1)").bind(1, std::string_view(text)).run();
}

}  // namespace

void storeResults(const std::filesystem::path& database, const job::Analysis& analysis, const Report& report) {
    store::Database db(database.string(), store::OpenMode::readWrite);
    store::Transaction transaction(db);
    for (const char* table : {"finding_evidence", "finding", "idle_gap", "attribution"})
        db.execute(std::string("DELETE FROM ") + table);
    const std::string peaks = renderLinkPeaksJson(report);
    Statement(db, "INSERT OR REPLACE INTO meta VALUES ('link_peaks', ?1)").bind(1, std::string_view(peaks)).run();
    storeAttribution(db, analysis);
    storeGaps(db, analysis);
    storePath(db, analysis);
    storeActivity(db, analysis);
    storeFits(db, analysis, report);
    int64_t id = 0;
    for (const job::Finding& finding : report.findings) storeFinding(db, report, finding, ++id);
    for (const job::Finding& note : report.notes) storeFinding(db, report, note, ++id);
    storeVerdict(db, report);
    storePlaces(db, analysis);
    transaction.commit();
}

}  // namespace rankscope::report
