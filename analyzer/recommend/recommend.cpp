// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/recommend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/shared_plays.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/phase_one.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/recommend/shared_trials.h"
#include "collector/store/reader.h"

namespace rankscope::recommend {
namespace {

/// What two runs of the same job may differ by: the standard error of their median steps, and a share that a handful of
/// runs cannot resolve.
double noiseOf(const job::Analysis& analysis) {
    std::vector<double> lengths;
    for (int step : analysis.steps) {
        int64_t longest = 0;
        for (const facts::RankSummary& rank : analysis.ranks)
            if (const facts::StepWindow* window = analysis.window(rank.rank, step))
                longest = std::max(longest, window->durNs);
        lengths.push_back(static_cast<double>(longest));
    }
    return std::max(RecommendThresholds::kNoiseFactor * facts::medianError(lengths),
                    RecommendThresholds::kFloorShare * analysis.stepNs);
}

/// Start-up has one number, the one that findings tell: it stands with the choice that takes most of a group's time,
/// whose times its line goes through.
void addLines(const job::Analysis& analysis, std::vector<costs::CostCurve>& curves) {
    for (const costs::CostFit& fit : analysis.cost.lines()) {
        const facts::Communicator* communicator = analysis.facts.findCommunicator(fit.communicatorId);
        if (communicator == nullptr) continue;
        const costs::GroupShape shape = costs::shapeOf(*communicator);
        costs::CostCurve* most = nullptr;
        for (costs::CostCurve& curve : curves) {
            const bool same =
                curve.key.from == costs::EvidenceFrom::trace && curve.key.op == fit.op && curve.key.shape == shape;
            if (same && (most == nullptr || curve.totalNs() > most->totalNs())) most = &curve;
        }
        if (most == nullptr || !most->group.empty()) continue;
        most->group = facts::communicatorName(analysis.facts, analysis.layout, fit.communicatorId);
        most->line = fit;
    }
}

}  // namespace

std::vector<std::string> Advice::whyNothingJudged() const {
    const auto isSetting = [](const Recommendation& r) { return r.kind == AdviceKind::setting; };
    if (!kept.empty() || std::ranges::any_of(recommendations, isSetting)) return {};
    if (!limits.empty()) return limits;
    return {
        "no collectives between ranks, gradient buckets, sharded parameters or pipeline were seen: no setting that is "
        "judged here touches this job"};
}

std::string Advice::nothingJudged() const {
    const std::vector<std::string> why = whyNothingJudged();
    return why.empty() ? std::string()
                       : fmt::format("{} could be judged, because: {}",
                                     recommendations.empty() ? "nothing" : "no setting", fmt::join(why, "; "));
}

void priceAlone(const job::Analysis& analysis, std::vector<job::Finding>& findings) {
    diagnose::priceFindings(analysis, findings);
}

Advice adviseOn(const job::Analysis& analysis, const RecommendOptions& options, const StepPredictor& predictor,
                const PriceFindings& price) {
    Advice advice;
    advice.run = analysis.facts.text("run_name");
    advice.death = facts::jobDeath(analysis.facts.losses);
    advice.shownName = !options.shownName.empty() ? options.shownName : analysis.facts.text("run_name", "NAME");
    advice.stepNs = analysis.stepNs;
    advice.steps = static_cast<int>(analysis.steps.size());
    advice.nccl = costs::ncclVersionOf(analysis.facts);
    advice.noiseNs = noiseOf(analysis);
    advice.judge = predictor.name;
    const costs::CollectiveCost cost(analysis.facts, analysis.peaks, options.tables);
    for (const auto& [key, curve] : cost.evidence().curves()) advice.curves.push_back(curve);
    addLines(analysis, advice.curves);
    advice.notes = cost.tableNotes(analysis.facts);
    for (const std::string& warning : analysis.peaks.warnings)
        advice.notes.push_back({costs::TableNote::Kind::links, "", 0, warning});
    if (advice.steps < diagnose::PriceThresholds::kFewestSteps) {
        advice.limits.push_back(fmt::format("{} analysed step{} cannot tell a gain from chance: at least {} are needed",
                                            advice.steps, advice.steps == 1 ? "" : "s",
                                            diagnose::PriceThresholds::kFewestSteps));
        return advice;
    }
    const auto tell = [&](const char* what, int stage) {
        if (options.progress) options.progress({what, stage, 0});
    };
    tell("what findings cost", 1);
    std::vector<job::Finding> findings = diagnose::detect(analysis);
    price(analysis, findings);
    composeAdvice({analysis, findings, cost, predictor, advice.nccl, advice.noiseNs, advice.shownName}, tell, advice);
    if (!predictor.replayed)
        for (Recommendation& recommendation : advice.recommendations)
            recommendation.certainty = Certainty::tryAndMeasure;
    return advice;
}

Advice recommend(const std::filesystem::path& trace, const RecommendOptions& options) {
    AdviceProgress now{"the trace", 0, 0};
    const auto tell = [&] {
        if (options.progress) options.progress(now);
    };
    tell();
    job::LoadOptions load{options.workers, options.links, {}, options.tables};
    load.team = options.team;
    load.tell = options.tell;
    std::vector<int> holders;
    load.holders = &holders;
    const job::Analysis analysis = job::readAnalysis(store::TraceReader::databasePath(trace), load);
    Playing playing{team::threadsFor(options.workers, options.team), [&] {
                        ++now.played;
                        tell();
                    }};
    std::optional<TeamTrials> trials;
    if (holders.size() > 1) playing.helpers = &trials.emplace(*options.team, holders);
    const PriceFindings price = [&](const job::Analysis& priced, std::vector<job::Finding>& findings) {
        diagnose::Plays plays = diagnose::playsBy(priced, options.team, holders, playing.workers);
        diagnose::priceFindings(priced, findings, plays);
        plays.finish();
        if (holders.size() > 1) diagnose::endSharedPlays(*options.team, holders);
    };
    const std::optional<StepPredictor> replayed = replayPredictor(analysis, noiseOf(analysis), playing);
    RecommendOptions told = options;
    told.progress = [&](const AdviceProgress& stage) {
        now = {stage.what, stage.stage, now.played};
        tell();
    };
    Advice advice = adviseOn(analysis, told, replayed ? *replayed : busyPeriodPredictor(analysis), price);
    if (!replayed)
        advice.limits.push_back(fmt::format("no replay: {}{}", analysis.replay.unavailable,
                                            advice.recommendations.empty() ? "" : ": gains are first estimates"));
    return advice;
}

void helpRecommend(const std::filesystem::path& trace, team::Team& team, const RecommendOptions& options) {
    const std::optional<job::Analysis> analysis =
        job::helpReadAnalysis(store::TraceReader::databasePath(trace), team, {.workers = options.workers});
    if (!analysis) return;
    diagnose::helpPlay(*analysis, team);
    helpWithTrials(*analysis, team);
}

}  // namespace rankscope::recommend
