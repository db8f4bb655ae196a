// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/analysis.h"

#include <algorithm>
#include <map>

#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {

const CostFit* Analysis::findFit(int64_t communicator, store::Op op) const {
    for (const CostFit& fit : fits)
        if (fit.communicatorId == communicator && fit.op == op) return &fit;
    return nullptr;
}

const RankSummary* Analysis::findRank(int rank) const {
    const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank, [](const RankSummary& r, int wanted) { return r.rank < wanted; });
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const StepWindow* Analysis::window(int rank, int step) const {
    const RankFacts* known = facts.findRank(rank);
    if (known == nullptr) return nullptr;
    for (const StepWindow& candidate : known->steps)
        if (candidate.step == step) return &candidate;
    return nullptr;
}

const Attribution* Analysis::attribution(const RankSummary& rank, int step) const {
    const RankFacts* known = facts.findRank(rank.rank);
    for (size_t i = 0; known != nullptr && i < known->steps.size() && i < rank.steps.size(); ++i)
        if (known->steps[i].step == step) return &rank.steps[i];
    return nullptr;
}

std::vector<CommTask> Analysis::tasks(const RankSummary& rank, int step) const {
    std::vector<CommTask> result;
    const StepWindow* where = window(rank.rank, step);
    if (where == nullptr) return result;
    auto task = std::lower_bound(rank.communication.begin(), rank.communication.end(), where->startNs,
                                 [](const CommTask& t, int64_t startNs) { return t.startNs < startNs; });
    for (; task != rank.communication.end() && task->startNs < where->startNs + where->durNs; ++task) result.push_back(*task);
    return result;
}

Analysis makeAnalysis(TraceFacts facts, std::vector<RankSummary> ranks) {
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
    analysis.stepNs = median(lengths);
    analysis.peaks = readLinkPeaks(analysis.facts);
    analysis.fits = fitCosts(analysis.facts, analysis.peaks);
    analysis.layout = inferLayout(analysis.facts, analysis.ranks);
    return analysis;
}

}  // namespace rankscope::analyzer
