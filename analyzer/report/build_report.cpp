// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/build_report.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "analyzer/diagnose/accounting.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/report/collective_table.h"
#include "analyzer/report/efficiency.h"
#include "analyzer/report/loss_text.h"

namespace rankscope::report {
namespace {

RunSection runSection(const job::Analysis& analysis) {
    const facts::TraceFacts& facts = analysis.facts;
    RunSection run;
    run.name = facts.text("run_name");
    run.worldSize = facts.worldSize();
    for (const facts::RankSummary& rank : analysis.ranks) run.ranks.push_back(rank.rank);
    for (const auto& [id, name] : facts.hosts)
        if (!name.empty()) run.hosts.push_back(name);
    run.source = facts.text("source", "unknown");
    run.isVirtual = facts.text("virtual") == "1";
    run.durationNs = std::atoll(facts.text("duration_ns", "0").c_str());
    run.steps = facts.wholeRunIsOneStep ? 0 : static_cast<int>(analysis.steps.size());
    run.stepSource = facts.stepSource;
    run.stepNs = analysis.stepNs;
    const std::string overhead = facts.text("overhead_ns");
    if (!overhead.empty()) run.overheadNs = std::atoll(overhead.c_str());
    return run;
}

std::vector<StepRow> stepRows(const job::Analysis& analysis) {
    std::map<int, std::pair<int64_t, int64_t>> extents;  // over ranks: first start, last end
    std::set<int> warmUp;
    for (const facts::RankFacts& rank : analysis.facts.ranks) {
        for (const facts::StepWindow& step : rank.steps) {
            const auto [at, isNew] = extents.try_emplace(step.step, step.startNs, step.startNs + step.durNs);
            at->second.first = std::min(at->second.first, step.startNs);
            at->second.second = std::max(at->second.second, step.startNs + step.durNs);
            if (step.warmUp) warmUp.insert(step.step);
        }
    }
    std::vector<StepRow> rows;
    if (analysis.facts.wholeRunIsOneStep) return rows;
    for (const auto& [step, extent] : extents)
        rows.push_back({step, extent.first, extent.second - extent.first, warmUp.count(step) != 0});
    return rows;
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

LayoutSection layoutSection(const facts::Layout& layout) {
    LayoutSection section{layout.dp,       layout.tp,         layout.pp,         layout.ep, layout.sp,
                          layout.zero,     layout.shard,      layout.replicate,  {},        {},
                          layout.schedule, layout.confidence, layout.confidences};
    if (!layout.pipelines.empty() && layout.pipelines.front().microBatches > 0) {
        section.microBatches = layout.pipelines.front().microBatches;
        section.virtualStages = layout.pipelines.front().virtualStages;
    }
    return section;
}

ReplaySection replaySection(const replay::ReplayModel& replay) {
    ReplaySection section;
    section.unavailable = replay.unavailable;
    if (replay.graph.size() == 0) return section;
    section.predictedStepNs = replay.predictedStepNs;
    section.measuredStepNs = replay.measuredStepNs;
    section.error = replay.error();
    section.notes = replay.notes;
    for (const replay::PathShare& share : replay.path) {
        section.criticalPathNs[std::string(toText(share.category))] += share.nsPerStep;
        section.criticalRanksNs[share.rank] += share.nsPerStep;
    }
    return section;
}

}  // namespace

Report buildReport(const job::Analysis& analysis, const diagnose::Claims& claims, std::vector<job::Finding> findings) {
    Report report;
    report.run = runSection(analysis);
    const facts::Layout& layout = analysis.layout;
    report.layout = layoutSection(layout);
    report.clock = {analysis.facts.clock.method, analysis.facts.clock.maxOffsetNs, analysis.facts.clock.boundNs};
    report.linkPeaks = analysis.peaks;
    report.steps = stepRows(analysis);
    report.run.warmUpSteps = static_cast<int>(
        std::count_if(report.steps.begin(), report.steps.end(), [](const StepRow& s) { return s.warmUp; }));
    for (const facts::RankSummary& rank : analysis.ranks) report.breakdown.push_back(breakdownRow(analysis, rank));
    report.efficiency = efficiencySection(analysis, report.breakdown);
    report.collectives = collectiveTable(analysis);
    report.replay = replaySection(analysis.replay);
    report.accounting = diagnose::accountFor(analysis, claims, findings);
    report.notJudged = diagnose::notJudged(analysis);
    std::erase_if(
        report.notJudged,
        [&](const diagnose::NotJudged& entry) {  // found all the same: by what needs no more than was recorded
            return std::any_of(findings.begin(), findings.end(), [&](const job::Finding& finding) {
                return finding.id == entry.id && finding.verdict == job::Verdict::found;
            });
        });
    report.delays = analysis.delays;
    for (job::Finding& finding : findings)
        (finding.verdict == job::Verdict::note ? report.notes : report.findings).push_back(std::move(finding));
    report.death = facts::jobDeath(analysis.facts.losses);
    for (const store::Loss& loss : analysis.facts.losses) {
        std::optional<int> rank;
        if (loss.rank) rank = *loss.rank;
        report.losses.push_back({loss.kind, std::string(store::toText(loss.severity)), loss.count, loss.message, rank});
    }
    for (const auto& [rank, sources] : analysis.facts.sourcesNotLive)
        for (const std::string& source : sources)
            report.losses.push_back({"source_not_live", "warning", 1, source, rank});
    orderLosses(report.losses);
    for (const facts::RankFacts& rank : analysis.facts.ranks) report.hostOfRank[rank.rank] = rank.host;
    report.groups = facts::communicatorNames(analysis.facts, analysis.layout);
    return report;
}

}  // namespace rankscope::report
