// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/pipeline_times.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

struct BubbleThresholds {
    double share = 0.10;  // of the step: the field's target for a pipeline bubble
    double unexplained =
        0.05;  // of the step beyond schedule and stage balance: noise of kernels and launch gaps stay under it
};

constexpr BubbleThresholds kThresholds;

struct Bubble {
    std::vector<double> shares;       // per step, mean over stages
    std::vector<double> remaining;    // of it, what no deeper cause explains
    std::vector<double> unexplained;  // of it, what schedule and stage balance do not explain either
    std::vector<double> theory;       // share of the step that a balanced schedule leaves idle
    std::vector<double> perStage;     // median share of each stage
};

/// Share of the step in which the stages stand still when the schedule runs with these stages.
double scheduleShare(const facts::PipelineModel& model, double stepNs) {
    const double makespan = model.makespanNs();
    double idle = 0;
    for (double work : model.stageNs) idle += makespan - work * model.microBatches;
    return stepNs > 0 ? idle / static_cast<double>(model.stageNs.size()) / stepNs : 0;
}

/// Share of the step for which hosts keep their devices from working. A stall of one stage makes the others wait, and
/// those of the stages come one after the other at worst: their sum.
double hostShare(const job::Analysis& analysis, const PipelineTimes& times, const PipelineStep& step) {
    double sum = 0;
    for (const std::vector<int>& stage : times.ranks) {
        double stalls = 0;
        for (int rank : stage)
            if (const facts::RankSummary* summary = analysis.findRank(rank))
                stalls += stallSum(*summary, step.step, [](const facts::HostStall&) { return true; }).ns;
        sum += stalls / static_cast<double>(stage.size());
    }
    return sum / step.stepNs();
}

/// Share of the step that slow links or long messages between stages cost, and the other stages stand still for: RS208,
/// RS204, RS103.
double messageShare(const job::Analysis& analysis, const Claims& claims, double stepNs) {
    double most = 0;
    for (const auto& [id, role] : analysis.layout.roles)
        if (role == facts::CommRole::pipeline) most = std::max(most, claims.explainedTransferNs(id, "RS101"));
    return most / stepNs;
}

Bubble measure(const job::Analysis& analysis, const Claims& claims, const PipelineTimes& times) {
    Bubble bubble;
    for (size_t s = 0; s < times.ranks.size(); ++s) {
        std::vector<double> shares;
        for (const PipelineStep& step : times.steps) shares.push_back(step.stages[s].bubbleNs / step.stages[s].stepNs);
        bubble.perStage.push_back(facts::median(std::move(shares)));
    }
    const std::vector<int> ranks = times.allRanks();
    for (const PipelineStep& step : times.steps) {
        const double share = step.bubbleShare(), stepNs = step.stepNs();
        double claimed = 0;
        for (int rank : ranks)
            claimed += claims.explainedNs(rank, step.step) / stepNs / static_cast<double>(ranks.size());
        const facts::PipelineModel model = times.model(step);
        bubble.shares.push_back(share);
        bubble.theory.push_back(scheduleShare(model.balanced(), stepNs));
        bubble.remaining.push_back(share - claimed);
        // Slow and heavy stages are in the model; what hosts did is not, nor messages that are longer than most.
        const double outside =
            std::max(claimed, hostShare(analysis, times, step)) + messageShare(analysis, claims, stepNs);
        bubble.unexplained.push_back(
            share - std::max(scheduleShare(model, stepNs), scheduleShare(model.balanced(), stepNs) + outside));
    }
    return bubble;
}

/// Fewest micro-batches, as a multiple of today's, whose bubble stays under the threshold.
int enoughMicroBatches(const facts::Pipeline& pipeline) {
    facts::Pipeline changed = pipeline;
    while (changed.theoreticalBubble() >= kThresholds.share) changed.microBatches += pipeline.microBatches;
    return changed.microBatches;
}

void sayTooFew(const PipelineTimes& times, job::Finding& finding, int enough) {
    const facts::Pipeline& shape = *times.shape;
    facts::Pipeline changed = shape;
    changed.microBatches = enough;
    finding.cause = fmt::format(
        "too few micro-batches: {} over {} stages; the schedule itself leaves (P-1)/(M V + P-1) = {} of its own time "
        "idle",
        shape.microBatches, shape.stages.size(), text::percentText(shape.theoreticalBubble()));
    facts::Pipeline more = shape;
    ++more.virtualStages;
    finding.fix = {fmt::format("raise the micro-batches per step from {} to {} (bubble {}): a larger global batch, or "
                               "smaller micro-batches",
                               shape.microBatches, enough, text::percentText(changed.theoreticalBubble())),
                   fmt::format("or interleave: with V = {} virtual stages per rank the bubble is {} (Megatron "
                               "--num-layers-per-virtual-pipeline-stage), for more p2p traffic",
                               more.virtualStages, text::percentText(more.theoreticalBubble())),
                   shape.schedule == "gpipe"
                       ? "memory: GPipe keeps the activations of all micro-batches; 1F1B at most one per stage"
                       : "memory: 1F1B keeps the activations of at most P micro-batches, whatever their number; "
                         "interleaving keeps up to (V-1)/V P more"};
}

void addEvidence(const job::Analysis& analysis, const PipelineTimes& times, const Bubble& bubble,
                 job::Finding& finding) {
    const facts::Pipeline& shape = *times.shape;
    const double share = facts::median(bubble.shares);
    std::string perStage;
    for (size_t i = 0; i < bubble.perStage.size(); ++i)
        perStage += fmt::format("{}{}", i == 0 ? "" : ", ", text::percentText(bubble.perStage[i]));
    finding.evidence.facts = {
        fmt::format("idle or waiting to receive: {} of the step on average, per stage {}", text::percentText(share),
                    perStage),
        fmt::format("schedule {}, P = {}, M = {}, V = {}: theory {} of the time from the first pass to the last, {} of "
                    "the step",
                    shape.schedule, shape.stages.size(), shape.microBatches, shape.virtualStages,
                    text::percentText(shape.theoreticalBubble()), text::percentText(facts::median(bubble.theory))),
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
    const PipelineTimes times = pipelineTimes(analysis);
    if (times.empty() || times.shape->microBatches < 1) return;
    const Bubble bubble = measure(analysis, claims, times);
    const double share = facts::median(bubble.shares), remaining = facts::median(bubble.remaining),
                 unexplained = facts::median(bubble.unexplained);
    const bool tooFew = times.shape->theoreticalBubble() > kThresholds.share && remaining > kThresholds.share;
    const bool moreThanTheSchedule = remaining > kThresholds.share && unexplained > kThresholds.unexplained;
    if (!tooFew && !moreThanTheSchedule) return;

    job::Finding finding;
    finding.id = "RS101";
    finding.ranks = finding.affectedRanks = times.allRanks();
    std::vector<double> costs;
    const int enough = tooFew ? enoughMicroBatches(*times.shape) : 0;
    if (tooFew) {
        for (double left : bubble.remaining) costs.push_back(std::max(0.0, left) * analysis.stepNs);
        sayTooFew(times, finding, enough);
        if (moreThanTheSchedule)
            finding.cause += fmt::format("; {} of the step are more than schedule and stage balance explain",
                                         text::percentText(unexplained));
    } else {
        for (double u : bubble.unexplained) costs.push_back(std::max(0.0, u) * analysis.stepNs);
        finding.cause =
            fmt::format("the stages stand still for {} of the step where schedule and stage balance explain {}",
                        text::percentText(share), text::percentText(share - unexplained));
        finding.fix = {
            "look at the send/recv waits in the window: transfers that are late, host calls that block between "
            "micro-batches"};
    }
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, times.ranks.front().front(), finding);
    addEvidence(analysis, times, bubble, finding);
    if (tooFew) finding.evidence.numbers.emplace_back("proposed_micro_batches", enough);
    if (finding.verdict == job::Verdict::found)
        for (const PipelineStep& step : times.steps)
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

std::vector<ThresholdEntry> thresholds() {
    constexpr BubbleThresholds t;
    return {
        {"share", t.share, "of the step", "the field's target for a pipeline bubble"},
        {"unexplained", t.unexplained, "of the step", "noise of kernels and launch gaps stay under it"},
        floorEntry(),
        fewestStepsEntry(),
    };
}

}  // namespace

const Diagnosis kBubble{
    .id = "RS101",
    .title = "pipeline bubble",
    .definition =
        "Idle or receive-wait time of the pipeline's stages inside a step, as a share of the step, averaged over the "
        "stages. It is compared with what the inferred schedule leaves idle by itself, (P-1)/(M V + P-1) for P stages, "
        "M micro-batches and V virtual stages: 'too few micro-batches' when that alone is over the threshold, 'more "
        "than the schedule explains' when playing the schedule with the stages' measured work and transfers leaves "
        "less idle than there is. Waiting that a deeper finding explains (a slow rank, a heavy stage, a stalled host) "
        "is not counted.",
    .thresholds = thresholds,
    .falsePositives =
        "A stage that is heavier than the others makes them wait: that is stage imbalance (RS102) and is not counted "
        "as a bubble. A stage whose device is slow is RS301, which keeps its share of the waiting. A ring of sends "
        "whose counts fit no number of virtual stages is left out.",
    .fix =
        "More micro-batches per step, or interleaved virtual stages. GPipe keeps the activations of all M "
        "micro-batches, 1F1B of at most P.",
    .hasSettings = true,
    .hint =
        "Orange and blank on the ranks' lines is the bubble: a stage with nothing to do until its neighbour sends. "
        "Framed are the longest waits.",
    .detect = detectBubble,
    .repair = enoughMicroBatches,
};

}  // namespace rankscope::diagnose
