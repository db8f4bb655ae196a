// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/rs101_bubble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/report/units.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

constexpr BubbleThresholds kThresholds;

struct StageTimes {
    double stepNs = 0;
    double computeNs = 0;
    double bubbleNs = 0;  // idle, or waiting in a send or receive
};

StageTimes stageTimes(const Analysis& analysis, const RankSummary& rank, int step) {
    StageTimes times;
    const Attribution* attribution = analysis.attribution(rank, step);
    if (attribution == nullptr) return times;
    times.stepNs = static_cast<double>(attribution->stepNs);
    times.computeNs = static_cast<double>(attribution->computeNs);
    times.bubbleNs = static_cast<double>(attribution->idleNs);
    for (const CommTask& task : analysis.tasks(rank, step))
        if (task.pointToPoint()) times.bubbleNs += static_cast<double>(task.exposedWaitNs);
    return times;
}

struct PipelineBubble {
    std::vector<double> shares;       // per step, mean over stages
    std::vector<double> unexplained;  // share beyond what schedule and stage balance explain
    std::vector<double> perStage;     // median share of each stage
    double stepNs = 0;
};

PipelineBubble measure(const Analysis& analysis, const Pipeline& pipeline) {
    PipelineBubble bubble;
    std::vector<std::vector<double>> byStage(pipeline.stages.size());
    std::vector<double> stepTimes;
    for (int step : analysis.steps) {
        double share = 0, compute = 0, longest = 0, length = 0;
        size_t seen = 0;
        for (size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
            for (const RankSummary& rank : analysis.ranks) {
                if (rank.rank != pipeline.stages[stage]) continue;
                const StageTimes times = stageTimes(analysis, rank, step);
                if (times.stepNs <= 0) continue;
                ++seen;
                share += times.bubbleNs / times.stepNs;
                byStage[stage].push_back(times.bubbleNs / times.stepNs);
                compute += times.computeNs;
                longest = std::max(longest, times.computeNs);
                length = std::max(length, times.stepNs);
            }
        }
        if (seen == 0 || longest <= 0) continue;
        const double stages = static_cast<double>(seen);
        // With stages of unlike speed the slowest sets the beat: the others idle even in an endless step.
        const double balanced = compute / stages / longest;
        const double explained = 1 - balanced * (1 - pipeline.theoreticalBubble());
        bubble.shares.push_back(share / stages);
        bubble.unexplained.push_back(share / stages - explained);
        stepTimes.push_back(length);
    }
    for (std::vector<double>& shares : byStage) bubble.perStage.push_back(median(shares));
    bubble.stepNs = median(stepTimes);
    return bubble;
}

/// Fewest micro-batches, as a multiple of today's, whose bubble stays under the threshold.
int enoughMicroBatches(const Pipeline& pipeline) {
    Pipeline changed = pipeline;
    while (changed.theoreticalBubble() >= kThresholds.share) changed.microBatches += pipeline.microBatches;
    return changed.microBatches;
}

}  // namespace

void detectBubble(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings) {
    const auto hasStraggler = [&](const Pipeline& pipeline) {
        return std::any_of(pipeline.stages.begin(), pipeline.stages.end(), [&](int rank) { return claims.isCulprit(rank); });
    };
    // Replicas of a pipeline have the same schedule: they make one finding, with the numbers of the worst that no straggler disturbs.
    const bool onlyDisturbed = std::all_of(analysis.layout.pipelines.begin(), analysis.layout.pipelines.end(), hasStraggler);
    const Pipeline* worst = nullptr;
    PipelineBubble bubble;
    std::vector<int> ranks;
    for (const Pipeline& pipeline : analysis.layout.pipelines) {
        ranks.insert(ranks.end(), pipeline.stages.begin(), pipeline.stages.end());
        if (hasStraggler(pipeline) && !onlyDisturbed) continue;
        PipelineBubble candidate = measure(analysis, pipeline);
        if (candidate.shares.empty()) continue;
        if (worst != nullptr && median(candidate.shares) <= median(bubble.shares)) continue;
        worst = &pipeline;
        bubble = std::move(candidate);
    }
    if (worst == nullptr) return;
    std::sort(ranks.begin(), ranks.end());
    const double theory = worst->theoreticalBubble();
    // What deeper causes explain of the waiting is theirs.
    double straggler = 0;
    for (int rank : worst->stages) straggler += claims.explainedNs(analysis, rank) / bubble.stepNs / static_cast<double>(worst->stages.size());
    const double share = median(bubble.shares);
    const double remaining = share - straggler;
    const double unexplained = median(bubble.unexplained);
    const bool fewMicroBatches = theory > kThresholds.share && remaining > kThresholds.share;
    const bool moreThanTheSchedule = theory > 0 && straggler <= 0 && share > kThresholds.share && unexplained > kThresholds.unexplained;
    if (!fewMicroBatches && !moreThanTheSchedule) return;

    Finding finding;
    finding.id = "RS101";
    finding.ranks = ranks;
    finding.affectedRanks = ranks;
    std::vector<double> costs;
    if (fewMicroBatches) {
        const int enough = enoughMicroBatches(*worst);
        Pipeline changed = *worst;
        changed.microBatches = enough;
        const double others = static_cast<double>(worst->stages.size()) - 1;
        // At equal tokens: M micro-batches take the time of M + (P-1)/V beats; more of them in one step share one fill and one drain.
        for (double s : bubble.shares) {
            const double beats = worst->microBatches + others / worst->virtualStages;
            const double busy = 1 - std::max(0.0, s - theory) - straggler;  // the part of the step that the beat fills
            const double perBeat = busy * bubble.stepNs / beats;
            costs.push_back(perBeat * others / worst->virtualStages * (1 - static_cast<double>(worst->microBatches) / enough));
        }
        finding.cause = fmt::format("too few micro-batches: {} over {} stages; the schedule itself leaves (P-1)/(M V + P-1) = {} idle", worst->microBatches,
                                    worst->stages.size(), percentText(theory));
        finding.fix = {fmt::format("raise the micro-batches per step from {} to {} (bubble {}): a larger global batch, or smaller micro-batches", worst->microBatches, enough,
                                   percentText(changed.theoreticalBubble())),
                       "or interleave: with V virtual stages per rank the bubble shrinks by V (Megatron --num-layers-per-virtual-pipeline-stage), for more p2p traffic",
                       worst->schedule == "gpipe" ? "memory: GPipe keeps the activations of all micro-batches; 1F1B at most one per stage"
                                                  : "memory: 1F1B keeps the activations of at most P micro-batches, whatever their number"};
    } else {
        for (double u : bubble.unexplained) costs.push_back(std::max(0.0, u) * bubble.stepNs);
        finding.cause = fmt::format("the stages idle for {} of the step where schedule and stage balance explain {}", percentText(share), percentText(share - unexplained));
        finding.fix = {"look at the send/recv waits in the window: transfers that are late, host calls that block between micro-batches"};
    }
    setCost(analysis, costs, finding);
    // What it costs is the idleness; the saving is what the proposed change brings back of it.
    finding.severity = fewMicroBatches ? remaining : unexplained;
    if (finding.severity >= CommonThresholds::kFloorShare) finding.verdict = Verdict::found;
    setTypicalStep(analysis, costs, worst->stages.front(), finding);
    std::string perStage;
    for (size_t i = 0; i < bubble.perStage.size(); ++i) perStage += fmt::format("{}{}", i == 0 ? "" : ", ", percentText(bubble.perStage[i]));
    finding.evidence.facts = {
        fmt::format("idle or waiting to receive: {} of the step on average, per stage {}", percentText(share), perStage),
        fmt::format("schedule {}, P = {}, M = {}: theory {}", worst->schedule, worst->stages.size(), worst->microBatches, percentText(theory)),
    };
    finding.evidence.numbers = {{"bubble_share", share}, {"theoretical_bubble_share", theory}, {"micro_batches", worst->microBatches},
                                {"stages", static_cast<double>(worst->stages.size())}};
    int rowsLeft = 3;
    for (const RankSummary& rank : analysis.ranks)
        for (const CommTask& task : rank.communication)
            if (rowsLeft > 0 && task.pointToPoint() && task.startNs >= finding.windowStartNs && task.startNs < finding.windowEndNs &&
                static_cast<double>(task.exposedWaitNs) > 0.02 * bubble.stepNs) {
                finding.evidence.rows.push_back({"kernel", task.kernelId, rank.rank, "waits for its neighbour for " + durationText(static_cast<double>(task.exposedWaitNs))});
                --rowsLeft;
            }
    finding.confidence = worst->schedule == "unknown" ? 0.7 : 0.9;
    findings.push_back(std::move(finding));
}

}  // namespace rankscope::analyzer
