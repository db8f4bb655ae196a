// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs101 {
namespace {

constexpr Threshold kShare{"share", 0.10, "of the step", "the field's target for a pipeline bubble"};

struct Bubble {
    std::vector<double> shares;     // per step, mean over stages
    std::vector<double> remaining;  // of it, what no deeper cause explains
    std::vector<double> perStage;   // median share of each stage
};

Bubble measure(const Claims& claims, const job::PipelineTimes& times) {
    Bubble bubble;
    for (size_t s = 0; s < times.ranks.size(); ++s) {
        std::vector<double> shares;
        for (const job::PipelineStep& step : times.steps)
            shares.push_back(step.stages[s].bubbleNs / step.stages[s].stepNs);
        bubble.perStage.push_back(facts::median(std::move(shares)));
    }
    const std::vector<int> ranks = times.allRanks();
    for (const job::PipelineStep& step : times.steps) {
        const double share = step.bubbleShare(), stepNs = step.stepNs();
        double claimed = 0;
        for (int rank : ranks)
            claimed += claims.explainedNs(rank, step.step) / stepNs / static_cast<double>(ranks.size());
        bubble.shares.push_back(share);
        bubble.remaining.push_back(share - claimed);
    }
    return bubble;
}

/// Fewest micro-batches, as a multiple of today's, whose bubble stays under the threshold.
int enoughMicroBatches(const facts::Pipeline& pipeline) {
    facts::Pipeline changed = pipeline;
    while (changed.theoreticalBubble() >= kShare) changed.microBatches += pipeline.microBatches;
    return changed.microBatches;
}

void sayTooFew(const job::PipelineTimes& times, job::Finding& finding, int enough) {
    const facts::Pipeline& shape = *times.shape;
    facts::Pipeline changed = shape;
    changed.microBatches = enough;
    finding.cause = fmt::format(
        "too few micro-batches: {} over {} stages; the schedule itself leaves (P-1)/(M V + P-1) = {} of its own time "
        "idle",
        shape.microBatches, shape.stages.size(), text::percentText(shape.theoreticalBubble()));
    facts::Pipeline more = shape, smaller = shape;
    smaller.microBatches *= 2;
    ++more.virtualStages;
    finding.fix = {
        fmt::format("keep the batch, in smaller micro-batches: {} of half the size (bubble {}), while their "
                    "kernels stay efficient",
                    smaller.microBatches, text::percentText(smaller.theoreticalBubble())),
        fmt::format("or interleave: with V = {} virtual stages per rank the bubble is {} (Megatron "
                    "--num-layers-per-virtual-pipeline-stage), for more p2p traffic",
                    more.virtualStages, text::percentText(more.theoreticalBubble())),
        fmt::format("or a larger batch: {} micro-batches of today's size (bubble {}), {} times the samples of a "
                    "step, which takes longer, and each sample less; adjust the learning rate",
                    enough, text::percentText(changed.theoreticalBubble()), enough / shape.microBatches),
        shape.schedule == "gpipe"
            ? "memory: GPipe keeps the activations of all micro-batches; 1F1B at most one per stage"
            : "memory: 1F1B keeps the activations of at most P micro-batches, whatever their number; "
              "interleaving keeps up to (V-1)/V P more"};
}

void addEvidence(const job::Analysis& analysis, const job::PipelineTimes& times, const Bubble& bubble,
                 job::Finding& finding) {
    const facts::Pipeline& shape = *times.shape;
    const double share = facts::median(bubble.shares);
    std::string perStage;
    for (size_t i = 0; i < bubble.perStage.size(); ++i)
        perStage += fmt::format("{}{}", i == 0 ? "" : ", ", text::percentText(bubble.perStage[i]));
    finding.evidence.facts = {
        fmt::format("idle or waiting to receive: {} of the step on average, per stage {}", text::percentText(share),
                    perStage),
        fmt::format("schedule {}, P = {}, M = {}, V = {}: theory {} of the time from the first pass to the last",
                    shape.schedule, shape.stages.size(), shape.microBatches, shape.virtualStages,
                    text::percentText(shape.theoreticalBubble())),
    };
    const double claimed = share - facts::median(bubble.remaining);
    if (claimed > 0.005)
        finding.evidence.facts.push_back(fmt::format(
            "{} of the step is explained by other findings and not counted here", text::percentText(claimed)));
    finding.evidence.numbers = {{"bubble_share", share},
                                {"theoretical_bubble_share", shape.theoreticalBubble()},
                                {"micro_batches", shape.microBatches},
                                {"virtual_stages", shape.virtualStages},
                                {"stages", static_cast<double>(shape.stages.size())}};
    std::vector<job::EvidenceRow> rows;
    for (int rank : times.allRanks()) {
        const facts::RankSummary* summary = analysis.findRank(rank);
        if (summary == nullptr) continue;
        for (const facts::CommTask& task : summary->communication) {
            if (finding.evidence.rows.size() == 3) return;
            if (task.startNs < finding.windowStartNs || task.startNs >= finding.windowEndNs ||
                analysis.layout.role(task) != facts::CommRole::pipeline)
                continue;
            if (static_cast<double>(task.exposedWaitNs) < 0.02 * analysis.stepNs) continue;
            finding.evidence.rows.push_back(
                {"kernel", task.kernelId, rank,
                 "waits for its neighbour for " + text::durationText(static_cast<double>(task.exposedWaitNs))});
        }
    }
}

void detectBubble(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const job::PipelineTimes& times = analysis.pipelineTimes;
    if (times.empty() || times.shape->microBatches < 1) return;
    const Bubble bubble = measure(claims, times);
    if (times.shape->theoreticalBubble() <= kShare || facts::median(bubble.remaining) <= kShare) return;

    job::Finding finding;
    finding.id = "RS101";
    finding.ranks = finding.affectedRanks = times.allRanks();
    std::vector<double> costs;
    for (double left : bubble.remaining) costs.push_back(std::max(0.0, left) * analysis.stepNs);
    const int enough = enoughMicroBatches(*times.shape);
    sayTooFew(times, finding, enough);
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, times.ranks.front().front(), finding);
    addEvidence(analysis, times, bubble, finding);
    finding.evidence.numbers.emplace_back("proposed_micro_batches", enough);
    if (finding.verdict == job::Verdict::found)
        for (const job::PipelineStep& step : times.steps)
            for (int rank : finding.ranks)
                claims.take(
                    "RS101", rank, step.step,
                    std::max(0.0, standstillNs(analysis, rank, step.step) - claims.explainedNs(rank, step.step)));
    findings.push_back(std::move(finding));
}

Changes enoughMicroBatches(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> count = number(f, "proposed_micro_batches");
    return count ? Changes{{"micro-batches", {{"count", fmt::format("{:.0f}", *count)}}}} : Changes();
}

}  // namespace

const Diagnosis kBubble{
    .id = "RS101",
    .title = "pipeline bubble",
    .definition =
        "Idle or receive-wait time of the pipeline's stages inside a step, as a share of the step, averaged over the "
        "stages, where the inferred schedule by itself leaves too much idle, (P-1)/(M V + P-1) for P stages, M "
        "micro-batches and V virtual stages: too few micro-batches. Waiting that a deeper finding explains (a slow "
        "rank, a heavy stage, a stalled host) is not counted; transfers are no waiting.",
    .thresholds = {kShare},
    .falsePositives =
        "A stage that is heavier than the others makes them wait: that is stage imbalance (RS102) and is not counted "
        "as a bubble. A stage whose device is slow is RS301, which keeps its share of the waiting. A ring of sends "
        "whose counts fit no number of virtual stages is left out.",
    .fix =
        "More micro-batches per step, or interleaved virtual stages. GPipe keeps the activations of all M "
        "micro-batches, 1F1B of at most P.",
    .hasSettings = true,
    .bySums = true,
    .hint =
        "Amber and blank on the ranks' lines is the bubble: a stage with nothing to do until its neighbour sends. "
        "Framed are the longest waits.",
    .detect = detectBubble,
    .repair = enoughMicroBatches,
};

}  // namespace rs101
}  // namespace rankscope::diagnose
