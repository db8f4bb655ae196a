// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/recommend.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/detectors/detector.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/timeline/phase_one.h"
#include "analyzer/timeline/statistics.h"
#include "collector/store/reader.h"

namespace rankscope::analyzer {
namespace {

Analysis analysisOf(const std::filesystem::path& database, unsigned workers) {
    TraceFacts facts;
    {
        store::TraceReader trace(database);
        facts = readTraceFacts(trace);
    }
    std::vector<RankSummary> ranks = summarizeRanks(database, facts, workers);
    return makeAnalysis(std::move(facts), std::move(ranks));
}

/// What two runs of the same job may differ by: the standard error of their median steps, and a share that a handful of runs cannot resolve.
double noiseOf(const Analysis& analysis) {
    std::vector<double> lengths;
    for (int step : analysis.steps) {
        int64_t longest = 0;
        for (const RankSummary& rank : analysis.ranks)
            if (const StepWindow* window = analysis.window(rank.rank, step)) longest = std::max(longest, window->durNs);
        lengths.push_back(static_cast<double>(longest));
    }
    return std::max(RecommendThresholds::kNoiseFactor * medianError(lengths), RecommendThresholds::kFloorShare * analysis.stepNs);
}

}  // namespace

void setSaving(const std::vector<double>& expected, const std::vector<double>& pessimistic, const std::vector<double>& optimistic, Recommendation& recommendation) {
    recommendation.savingNs = median(expected);
    recommendation.savingLowNs = std::min(recommendation.savingNs, median(pessimistic)) - quartileHalfWidth(pessimistic);
    recommendation.savingHighNs = std::max(recommendation.savingNs, median(optimistic)) + quartileHalfWidth(optimistic);
}

Advice recommend(const std::filesystem::path& trace, const RecommendOptions& options) {
    const Analysis analysis = analysisOf(store::TraceReader::databasePath(trace), options.workers);
    Advice advice;
    advice.run = analysis.facts.text("run_name");
    advice.stepNs = analysis.stepNs;
    advice.steps = static_cast<int>(analysis.steps.size());
    advice.nccl = ncclVersionOf(analysis.facts);
    advice.noiseNs = noiseOf(analysis);
    const CostEvidence evidence(analysis.facts, options.tables);
    for (const auto& [key, curve] : evidence.curves()) advice.curves.push_back(curve);
    if (advice.steps < CommonThresholds::kFewestSteps) {
        advice.limits.push_back(fmt::format("{} analysed steps: fewer than {} cannot tell a gain from chance, so that nothing is recommended", advice.steps, CommonThresholds::kFewestSteps));
        return advice;
    }
    const std::vector<Finding> findings = detect(analysis);
    const TransferCost cost(analysis, evidence);
    const StepPredictor predictor = busyPeriodPredictor(analysis);
    const AdviceContext context{analysis, findings, evidence, cost, predictor, advice.nccl, advice.noiseNs};
    adviseAlgorithms(context, advice);
    adviseFromFindings(context, advice);
    std::stable_sort(advice.recommendations.begin(), advice.recommendations.end(), [](const Recommendation& a, const Recommendation& b) {
        return a.certainty != b.certainty ? a.certainty < b.certainty : a.savingNs > b.savingNs;
    });
    return advice;
}

}  // namespace rankscope::analyzer
