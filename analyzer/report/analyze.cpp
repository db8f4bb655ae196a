// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/analyze.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "analyzer/diagnose/accounting.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/shared_plays.h"
#include "analyzer/job/light_recording.h"
#include "analyzer/job/phase_one.h"
#include "analyzer/report/bound.h"
#include "analyzer/report/memory.h"
#include "analyzer/report/sentences.h"
#include "analyzer/report/step_overview.h"
#include "analyzer/report/step_rows.h"
#include "analyzer/report/volume.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "collector/team/packing.h"
#include "collector/team/team.h"

namespace rankscope::report {
namespace {

void addRecorder(const facts::JobEnd& end, RunSection& run) {
    run.isRecorder = true;
    run.ranks.clear();
    for (const facts::RankEnd& rank : end.ranks) {
        if (rank.recorded) run.ranks.push_back(rank.rank);
        run.openCalls += std::ssize(rank.unfinished);
    }
}

RunSection runSection(const job::Analysis& analysis) {
    const facts::TraceFacts& facts = analysis.facts;
    RunSection run;
    run.name = facts.text("run_name");
    run.worldSize = facts.worldSize();
    for (const facts::RankSummary& rank : analysis.ranks) run.ranks.push_back(rank.rank);
    if (facts.end && facts.end->isRecorder) addRecorder(*facts.end, run);
    for (const auto& [id, name] : facts.hosts)
        if (!name.empty()) run.hosts.push_back(name);
    run.source = facts.text("source", "unknown");
    run.isVirtual = facts.text("virtual") == "1";
    run.isDump = !facts.text("dump").empty();
    run.durationNs = std::atoll(facts.text("duration_ns", "0").c_str());
    run.steps = facts.wholeRunIsOneStep ? 0 : static_cast<int>(analysis.steps.size());
    run.stepSource = facts.stepSource;
    run.stepNs = analysis.stepNs;
    const std::string overhead = facts.text("overhead_ns");
    if (!overhead.empty()) run.overheadNs = std::atoll(overhead.c_str());
    return run;
}

BreakdownRow breakdownRow(const job::Analysis& analysis, const facts::RankSummary& rank) {
    BreakdownRow row;
    row.rank = rank.rank;
    const facts::RankFacts* facts = analysis.facts.findRank(rank.rank);
    row.host = facts->host;
    for (size_t i = 0; i < rank.steps.size(); ++i)
        if (!facts->steps[i].warmUp) row.total += rank.steps[i];
    row.splitKnown = static_cast<double>(row.total.unsplitNs) <
                     diagnose::PriceThresholds::kNoteShare * static_cast<double>(row.total.stepNs);
    for (size_t cause = 0; cause < rank.idleByCauseNs.size(); ++cause)
        row.idleByCauseNs[std::string(toText(static_cast<facts::IdleCause>(cause)))] = rank.idleByCauseNs[cause];
    return row;
}

ReplaySection replaySection(const replay::ReplayModel& replay) {
    ReplaySection section;
    section.unavailable = replay.unavailable;
    if (replay.graph.size() == 0) return section;
    section.predictedStepNs = replay.predictedStepNs;
    section.measuredStepNs = replay.measuredStepNs;
    section.error = replay.error();
    section.notes = replay.notes;
    section.partNote = replay.partNote;
    for (const replay::PathShare& share : replay.path) {
        section.criticalPathNs[std::string(toText(share.category))] += share.nsPerStep;
        section.criticalRanksNs[share.rank] += share.nsPerStep;
    }
    return section;
}

Efficiency efficiencyOf(const std::vector<const BreakdownRow*>& rows) {
    Efficiency result;
    double compute = 0, longest = 0, step = 0;
    for (const BreakdownRow* row : rows) {
        compute += static_cast<double>(row->total.computeNs);
        longest = std::max(longest, static_cast<double>(row->total.computeNs));
        step = std::max(step, static_cast<double>(row->total.stepNs));
    }
    if (rows.empty() || step <= 0 || longest <= 0) return result;
    const double mean = compute / static_cast<double>(rows.size());
    result.parallel = mean / step;
    if (rows.size() < 2) return result;  // one rank has nobody to be balanced with
    result.loadBalance = mean / longest;
    result.serialisation = *result.parallel / *result.loadBalance;
    return result;
}

/// The POP model (Performance Optimisation and Productivity centre): parallel efficiency = mean compute / step = load
/// balance (mean / longest compute) x serialisation x transfer. Transfer comes from a replay on an ideal network;
/// without one, and for groups, it is unknown and stays inside serialisation. The same for every communicator with a
/// known role, over its recorded members: where inside the job the balance is lost.
EfficiencySection efficiencySection(const job::Analysis& analysis, const std::vector<BreakdownRow>& rows,
                                    diagnose::Plays& plays) {
    EfficiencySection section;
    std::vector<const BreakdownRow*> all;
    std::map<int, const BreakdownRow*> byRank;
    for (const BreakdownRow& row : rows) {
        all.push_back(&row);
        byRank[row.rank] = &row;
    }
    static_cast<Efficiency&>(section) = efficiencyOf(all);
    section.transfer = diagnose::transferEfficiency(analysis, plays);
    if (section.serialisation && section.transfer && *section.transfer > 0) *section.serialisation /= *section.transfer;
    for (const auto& [id, role] : analysis.layout.roles) {
        if (role == facts::CommRole::unknown || role == facts::CommRole::control) continue;
        GroupEfficiency group;
        group.communicator = id;
        group.role = std::string(toText(role));
        std::vector<const BreakdownRow*> members;
        for (int rank : analysis.facts.communicators.at(id).ranks) {
            const auto row = byRank.find(rank);
            if (row == byRank.end()) continue;
            members.push_back(row->second);
            group.ranks.push_back(rank);
        }
        if (members.size() < 2) continue;
        static_cast<Efficiency&>(group) = efficiencyOf(members);
        section.groups.push_back(std::move(group));
    }
    return section;
}

bool endsJob(const job::Finding& finding) {
    return diagnose::familyOf(finding.id) == diagnose::Family::hang;
}

/// Of a failed job, what its finding tells: how its ranks ended, and that the work in flight was never finished.
bool followsFromFailure(const store::Loss& loss) {
    constexpr std::string_view kKinds[] = {
        "died",          "failed_exit",    "first_death",       "unmatched_collective",
        "unmatched_p2p", "kernel_missing", "cupti_undelivered", "missing_rank"};
    return std::ranges::find(kKinds, std::string_view(loss.kind)) != std::end(kKinds);
}

}  // namespace

Report buildReport(const job::Analysis& analysis, const diagnose::Claims& claims, std::vector<job::Finding> findings,
                   diagnose::Plays& plays) {
    Report report;
    report.run = runSection(analysis);
    report.layout = analysis.layout;
    report.clock = analysis.facts.clock;
    report.linkPeaks = analysis.peaks;
    report.steps = stepRows(analysis.facts);
    report.run.warmUpSteps =
        static_cast<int>(std::ranges::count_if(report.steps, [](const StepRow& s) { return s.warmUp; }));
    for (const facts::RankSummary& rank : analysis.ranks) report.breakdown.push_back(breakdownRow(analysis, rank));
    report.efficiency = efficiencySection(analysis, report.breakdown, plays);
    if (!report.run.isRecorder) {
        report.collectives = collectiveTable(analysis);
        report.volumes = volumesOf(analysis);
    }
    report.replay = replaySection(analysis.replay);
    // Of ranks that share a device a kernel's time is also the others', and a gap may be theirs.
    const bool knowsKernels = !job::isByCalls(analysis) && !analysis.facts.sharesDevices();
    report.bound = boundOf(report.replay, report.breakdown, knowsKernels);
    if (diagnose::whyOnlyTheEnd(analysis).empty()) report.accounting = diagnose::accountFor(analysis, claims, findings);
    report.notJudged = diagnose::notJudged(analysis);
    std::erase_if(
        report.notJudged,
        [&](const diagnose::NotJudged& entry) {  // found all the same: by what needs no more than was recorded
            return std::ranges::any_of(findings, [&](const job::Finding& finding) {
                return finding.id == entry.id && finding.verdict == job::Verdict::found;
            });
        });
    report.delays = analysis.delays;
    for (job::Finding& finding : findings)
        (finding.verdict == job::Verdict::note ? report.notes : report.findings).push_back(std::move(finding));
    report.death = facts::jobDeath(analysis.facts.losses);
    const bool told = std::ranges::any_of(report.findings, [](const job::Finding& finding) {
        return endsJob(finding) && finding.verdict == job::Verdict::found;
    });
    // A recording of the end shows that there was a failure, dumps of a job that got on do not. A rank that was killed
    // after the same calls as its peers failed, too, without a call that shows it.
    report.failed = told || (!report.run.isRecorder && (std::ranges::any_of(report.findings, endsJob) ||
                                                        facts::firstToFail(analysis.facts.losses).has_value()));
    for (const store::Loss& loss : analysis.facts.losses) {
        if (told && followsFromFailure(loss)) continue;
        std::optional<int> rank;
        if (loss.rank) rank = *loss.rank;
        report.losses.push_back({loss.kind, std::string(store::toText(loss.severity)), loss.count, loss.message, rank});
    }
    if (analysis.facts.end && analysis.facts.end->isRecorder)
        for (const facts::RankEnd& rank : analysis.facts.end->ranks)
            if (rank.isOld)
                report.losses.push_back(
                    {"old_dump", "warning", 1,
                     "a dump was written before the others, while the job got on: what it lacks says "
                     "nothing, and it is not judged",
                     rank.rank});
    for (const auto& [rank, sources] : analysis.facts.sourcesNotLive)
        for (const std::string& source : sources)
            report.losses.push_back({"source_not_live", "warning", 1, source, rank});
    orderLosses(report.losses);
    for (const facts::RankFacts& rank : analysis.facts.ranks) report.hostOfRank[rank.rank] = rank.host;
    report.groups = facts::communicatorNames(analysis.facts, analysis.layout);
    return report;
}

job::Analysis readWithOverview(const std::filesystem::path& database, job::LoadOptions options,
                               StepOverview& overview) {
    std::optional<StepOverviewPainter> painter;
    options.takeObserved = [&painter](std::string_view bytes) {
        painter->addLanes(team::Unpacker(bytes, "another process").get<std::vector<OverviewLane>>());
    };
    options.observer = [&painter, first = std::move(options.observer)](const facts::TraceFacts& facts) {
        painter.emplace(facts);
        return [&painter, other = first ? first(facts) : nullptr](const facts::RankEvents& events) {
            if (other) other(events);
            painter->take(events);
        };
    };
    job::Analysis analysis = job::readAnalysis(database, options);
    overview = std::move(*painter).finish();
    return analysis;
}

void helpAnalyze(const std::filesystem::path& trace, team::Team& team, const AnalyzeOptions& options) {
    std::optional<StepOverviewPainter> painter;
    job::PhaseOneHelp help{.workers = options.workers};
    if (options.overview) {
        help.observer = [&painter](const facts::TraceFacts& facts) {
            painter.emplace(facts);
            return [&painter](const facts::RankEvents& events) { painter->take(events); };
        };
        help.give = [&painter] { return team::Packer()(std::move(*painter).finish().lanes).take(); };
    }
    const std::optional<job::Analysis> analysis =
        job::helpReadAnalysis(store::TraceReader::databasePath(trace), team, help);
    if (analysis) diagnose::helpPlay(*analysis, team);
}

Report analyze(const std::filesystem::path& trace, const AnalyzeOptions& options) {
    const std::filesystem::path database = store::TraceReader::databasePath(trace);
    std::optional<StepOverview> overview;
    job::LoadOptions load{options.workers, options.links, {}};
    load.team = options.team;
    load.tell = options.tell;
    load.replayed = options.replayed;
    std::vector<int> holders;
    load.holders = &holders;
    const job::Analysis analysis =
        options.overview ? readWithOverview(database, load, overview.emplace()) : job::readAnalysis(database, load);
    diagnose::Plays plays = diagnose::playsBy(analysis, options.team, holders, options.workers);
    plays.prepare();
    diagnose::Claims claims;
    std::vector<job::Finding> findings = diagnose::detect(analysis, claims);
    plays.expectAtEnd({.instant = true});  // for the efficiencies
    const std::optional<diagnose::Ceiling> ceiling = diagnose::priceFindings(analysis, findings, plays);
    Report report = buildReport(analysis, claims, std::move(findings), plays);
    plays.finish();
    report.replay.ceiling = ceiling;
    report.overview = std::move(overview);
    store::TraceReader reader(database, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
    report.memory = readMemory(reader, analysis);
    if (options.storeResults) {
        try {
            storeResults(database, analysis, report);
        } catch (const store::Error& error) {
            report.losses.push_back({"results_not_stored", "info", 1,
                                     std::string("the results are not kept in the trace: ") + error.what(),
                                     std::nullopt});
        }
    }
    return report;
}

}  // namespace rankscope::report
