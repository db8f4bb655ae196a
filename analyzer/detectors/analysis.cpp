// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/detectors/collective_speed.h"
#include "analyzer/detectors/reached_peaks.h"
#include "analyzer/timeline/link_startup.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {

const CostFit* RecordedJob::findFit(int64_t communicator, store::Op op) const {
    for (const CostFit& fit : fits)
        if (fit.communicatorId == communicator && fit.op == op) return &fit;
    return nullptr;
}

const RankSummary* RecordedJob::findRank(int rank) const {
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                     [](const RankSummary& r, int wanted) { return r.rank < wanted; });
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const StepWindow* RecordedJob::window(int rank, int step) const {
    const RankFacts* known = facts.findRank(rank);
    if (known == nullptr) return nullptr;
    for (const StepWindow& candidate : known->steps)
        if (candidate.step == step) return &candidate;
    return nullptr;
}

const Attribution* RecordedJob::attribution(const RankSummary& rank, int step) const {
    const RankFacts* known = facts.findRank(rank.rank);
    for (size_t i = 0; known != nullptr && i < known->steps.size() && i < rank.steps.size(); ++i)
        if (known->steps[i].step == step) return &rank.steps[i];
    return nullptr;
}

std::vector<CommTask> RecordedJob::tasks(const RankSummary& rank, int step) const {
    std::vector<CommTask> result;
    const StepWindow* where = window(rank.rank, step);
    if (where == nullptr) return result;
    auto task = std::lower_bound(rank.communication.begin(), rank.communication.end(), where->startNs,
                                 [](const CommTask& t, int64_t startNs) { return t.startNs < startNs; });
    for (; task != rank.communication.end() && task->startNs < where->startNs + where->durNs; ++task)
        result.push_back(*task);
    return result;
}

namespace {

constexpr size_t kFewestStepsLeft =
    3;  // fewer make no claim: then steps with gaps in the recording are better than none

/// Leaves out steps in which some rank's device records are missing, and says so.
void leaveOutLostSteps(Analysis& analysis, std::vector<double>& lengths) {
    std::set<int> lost;
    for (const RankSummary& rank : analysis.ranks) lost.insert(rank.lostSteps.begin(), rank.lostSteps.end());
    const auto left =
        std::count_if(analysis.steps.begin(), analysis.steps.end(), [&](int step) { return lost.count(step) == 0; });
    const bool enough = left >= static_cast<std::ptrdiff_t>(kFewestStepsLeft);
    for (const RankSummary& rank : analysis.ranks) {
        if (rank.lostSteps.empty()) continue;
        store::Loss loss;
        loss.kind = "device_records_missing";
        loss.severity = store::Severity::warning;
        loss.rank = rank.rank;
        loss.count = static_cast<int64_t>(rank.lostSteps.size());
        loss.message =
            fmt::format("in {} step{} of rank {}, first step {}, the device records of launched work are missing: {}",
                        rank.lostSteps.size(), rank.lostSteps.size() == 1 ? "" : "s", rank.rank, rank.lostSteps.front(),
                        enough ? "these steps are left out on every rank" : "what looks idle there may have been busy");
        analysis.facts.losses.push_back(std::move(loss));
    }
    if (!enough || lost.empty()) return;
    std::vector<int> steps;
    std::vector<double> kept;
    for (size_t i = 0; i < analysis.steps.size(); ++i) {
        if (lost.count(analysis.steps[i]) != 0) continue;
        steps.push_back(analysis.steps[i]);
        kept.push_back(lengths[i]);
    }
    analysis.steps = std::move(steps);
    lengths = std::move(kept);
}

/// Rates by specification and tables of large messages tell no start-up. Without one small messages would look slow on
/// a healthy link, so that they get the usual one; what a user left out stays open, and lower bounds get theirs where
/// they are compared.
void assumeStartups(LinkPeaks& peaks) {
    for (const bool betweenNodes : {false, true}) {
        std::optional<LinkClass>& link = betweenNodes ? peaks.inter : peaks.intra;
        if (!link || link->alphaNs > 0 || link->kind == PeakKind::told || link->kind == PeakKind::atLeast) continue;
        link->alphaNs = unknownAlphaNs(betweenNodes);
        link->source += ", start-up assumed";
    }
    nameSources(peaks);
}

void warnOfLinks(Analysis& analysis) {
    for (const std::string& warning : analysis.peaks.warnings) {
        store::Loss loss;
        loss.kind = "link_peaks";
        loss.severity = store::Severity::warning;
        loss.count = 1;
        loss.message = warning;
        analysis.facts.losses.push_back(std::move(loss));
    }
}

}  // namespace

Analysis makeAnalysis(TraceFacts facts, std::vector<RankSummary> ranks, const LinkSources& links) {
    Analysis analysis;
    analysis.facts = std::move(facts);
    analysis.ranks = std::move(ranks);
    int64_t gapId = 0;
    for (RankSummary& rank : analysis.ranks)
        for (IdleGap& gap : rank.idleGaps) gap.id = ++gapId;
    std::map<int, int> seenBy;
    std::map<int, int64_t> longest;
    for (const RankFacts& rank : analysis.facts.ranks) {
        for (const StepWindow& step : rank.steps) {
            if (step.warmUp || !rank.recorded) continue;
            ++seenBy[step.step];
            longest[step.step] = std::max(longest[step.step], step.durNs);
        }
    }
    std::vector<double> lengths;
    for (const auto& [step, count] : seenBy) {
        if (count < static_cast<int>(analysis.ranks.size())) continue;
        analysis.steps.push_back(step);
        lengths.push_back(static_cast<double>(longest[step]));
    }
    leaveOutLostSteps(analysis, lengths);
    analysis.stepNs = median(lengths);
    analysis.peaks = resolveLinkPeaks(analysis.facts, links);
    assumeStartups(analysis.peaks);
    warnOfLinks(analysis);
    addReachedPeaks(analysis);
    analysis.fits = fitCosts(analysis.facts, analysis.peaks);
    analysis.layout = inferLayout(analysis.facts, analysis.ranks);
    analysis.kernelRatios = compareKernels(analysis);
    analysis.linkProbes = probeLinks(analysis);
    return analysis;
}

}  // namespace rankscope::analyzer
