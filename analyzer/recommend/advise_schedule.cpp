// SPDX-License-Identifier: Apache-2.0
// Micro-batches and virtual stages of pipelines, prefetching of sharded parameters: what the replay says of each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

/// More micro-batches always shrink the bubble: the fewest are proposed whose step is this close to that of the most
/// that are tried. Where the most gain no more than that, fewer need not be played.
constexpr double kCloseEnough = 0.03;

constexpr const char* kAhead = "prefetch:depth=1";

struct Plan {
    int microBatches = 0;
    int virtualStages = 1;
    std::string change;
    edits::SideGain step;

    double savingNs() const { return step.savingNs.expected; }
};

enum class Batch : uint8_t { grown, kept };

std::optional<Plan> tryPlan(const AdviceContext& context, Plan plan) {
    auto step = context.predictor.edited(plan.change);
    if (!step) return std::nullopt;
    plan.step = std::move(*step);
    return plan;
}

void playAhead(const AdviceContext& context, const std::vector<std::string>& changes) {
    if (context.predictor.playAhead) context.predictor.playAhead(changes);
}

std::string toMicroBatches(int count, Batch batch) {
    return fmt::format("micro-batches:count={}{}", count, batch == Batch::kept ? ",batch=kept" : "");
}

std::optional<Plan> tryMicroBatches(const AdviceContext& context, int count, Batch batch) {
    return tryPlan(context, {count, 1, toMicroBatches(count, batch), {}});
}

std::string toVirtualStages(int count) {
    return fmt::format("schedule:name=interleaved,virtual={}", count);
}

void take(Recommendation& r, const std::string& change, const edits::SideGain& step) {
    r.change.edits = {change};
    r.savingNs = step.savingNs;
    r.evidence.insert(r.evidence.end(), step.assumed.begin(), step.assumed.end());
}

bool worthIt(const AdviceContext& context, const edits::SideGain& step) {
    return step.savingNs.expected > context.noiseNs && step.savingNs.low > 0;
}

std::string sizeText(int parts) {
    return parts == 2   ? "half"
           : parts == 3 ? "a third of"
           : parts == 4 ? "a quarter of"
                        : fmt::format("1/{} of", parts);
}

std::string memoryText(const facts::Pipeline& pipeline) {
    return pipeline.schedule == "gpipe" ? "Memory: GPipe keeps the activations of all micro-batches"
                                        : "Memory: 1F1B keeps the activations of no more micro-batches than before";
}

/// The same batch in smaller micro-batches.
Recommendation smallerMicroBatches(const AdviceContext& context, const facts::Pipeline& pipeline, const Plan& plan) {
    const int parts = plan.microBatches / pipeline.microBatches;
    Recommendation r;
    r.area = "micro_batches";
    r.title = fmt::format("keep the batch: {} micro-batches of {} the size instead of {}", plan.microBatches,
                          sizeText(parts), pipeline.microBatches);
    r.settings.launcher = {{"micro_batches", std::to_string(plan.microBatches)},
                           {"micro_batch_size", fmt::format("1/{} of today's", parts)}};
    r.notes = {fmt::format("DeepSpeed: gradient_accumulation_steps {} and {} train_micro_batch_size_per_gpu",
                           plan.microBatches, sizeText(parts))};
    take(r, plan.change, plan.step);
    if (plan.step.savingNs.low <= 0) r.certainty = Certainty::tryAndMeasure;
    r.basis = "the schedule played with so many micro-batches; " + context.predictor.name;
    r.risk = "smaller kernels may use the device less well. " + memoryText(pipeline);
    r.verify = "run again with it and compare the steps: the batch is the same (rankscope compare)";
    if (context.found(diagnose::kBubble)) r.findings = {diagnose::kBubble.id};
    return r;
}

/// More micro-batches of the present size.
Recommendation largerBatch(const AdviceContext& context, const facts::Pipeline& pipeline, const Plan& plan) {
    Recommendation r;
    r.area = "global_batch";
    r.batch = plan.microBatches / pipeline.microBatches;
    r.title =
        fmt::format("a larger batch: {} micro-batches of today's size instead of {}, {} times the samples of a step",
                    plan.microBatches, pipeline.microBatches, r.batch);
    r.settings.launcher = {{"micro_batches", std::to_string(plan.microBatches)},
                           {"global_batch", fmt::format("{} times today's", r.batch)}};
    r.settings.deepspeed = {{"gradient_accumulation_steps", std::to_string(plan.microBatches)}};
    take(r, plan.change, plan.step);
    r.basis = "the schedule played with so many micro-batches; " + context.predictor.name;
    r.risk = "a larger global batch: adjust the learning rate. " + memoryText(pipeline);
    r.verify = fmt::format(
        "run again with it, as NEW: `rankscope compare {} NEW --per sample={}` compares the time per sample",
        text::shellWord(context.runName), r.batch);
    if (context.found(diagnose::kBubble)) r.findings = {diagnose::kBubble.id};
    return r;
}

/// Of so many micro-batches as `plans` have the fewest that surely gain with the batch as it is; else the fewest that
/// are worth a trial.
std::optional<Plan> ofTheSameBatch(const AdviceContext& context, const facts::Pipeline& pipeline,
                                   const std::vector<Plan>& plans) {
    std::vector<std::string> ahead;
    for (const Plan& plan : plans)
        if (plan.microBatches % pipeline.microBatches == 0)
            ahead.push_back(toMicroBatches(plan.microBatches, Batch::kept));
    playAhead(context, ahead);
    std::optional<Plan> trial;
    for (const Plan& plan : plans) {
        if (plan.microBatches % pipeline.microBatches != 0) continue;
        auto kept = tryMicroBatches(context, plan.microBatches, Batch::kept);
        if (kept && worthIt(context, kept->step)) return kept;
        if (kept && !trial && kept->savingNs() > RecommendThresholds::kTryShare * context.analysis.stepNs)
            trial = std::move(kept);
    }
    return trial;
}

void adviseMicroBatches(const AdviceContext& context, const facts::Pipeline& pipeline, Advice& advice) {
    // The finding proposes the fewest that bring the bubble under its threshold: they are taken where nothing is much
    // better, and named beside what is.
    const auto proposed =
        static_cast<int>(std::llround(context.proposed(diagnose::kBubble, "proposed_micro_batches").value_or(0)));
    std::set<int> counts;
    for (int factor : {2, 3, 4, 6, 8}) counts.insert(factor * pipeline.microBatches);
    if (proposed > pipeline.microBatches) counts.insert(proposed);
    const auto keep = [&](double mostNs) {
        advice.kept.push_back(
            {"micro_batches", fmt::format("keep {}: more of them gain {} a step at equal tokens at most",
                                          pipeline.microBatches, text::durationText(std::max(0.0, mostNs)))});
    };
    const auto most = tryMicroBatches(context, *counts.rbegin(), Batch::grown);
    if (most && most->savingNs() <= kCloseEnough * context.analysis.stepNs) return keep(most->savingNs());
    std::vector<std::string> ahead;
    for (int count : counts) ahead.push_back(toMicroBatches(count, Batch::grown));
    playAhead(context, ahead);
    std::vector<Plan> plans;
    for (int count : counts)
        if (auto plan = tryMicroBatches(context, count, Batch::grown)) plans.push_back(std::move(*plan));
    if (plans.empty()) return;
    double mostNs = 0;
    std::vector<std::string> shown;
    for (const Plan& plan : plans) {
        mostNs = std::max(mostNs, plan.savingNs());
        shown.push_back(
            fmt::format("{}: {:+.1f} %", plan.microBatches, -100 * plan.savingNs() / context.analysis.stepNs));
    }
    const auto isProposed = std::ranges::find(plans, proposed, &Plan::microBatches);
    const double closeNs = mostNs - kCloseEnough * (context.analysis.stepNs - mostNs);
    const Plan& best =
        isProposed != plans.end() && worthIt(context, isProposed->step) && isProposed->savingNs() >= closeNs
            ? *isProposed
            : *std::ranges::find_if(plans, [&](const Plan& plan) { return plan.savingNs() >= closeNs; });
    if (!worthIt(context, best.step) || mostNs <= kCloseEnough * context.analysis.stepNs) return keep(mostNs);
    const std::string sweep = fmt::format("step time at equal tokens by micro-batches: {}", fmt::join(shown, ", "));
    if (const auto smaller = ofTheSameBatch(context, pipeline, plans)) {
        advice.recommendations.push_back(smallerMicroBatches(context, pipeline, *smaller));
        advice.recommendations.back().evidence.insert(advice.recommendations.back().evidence.begin(), sweep);
    } else if (!context.found(diagnose::kBubble)) {
        advice.kept.push_back({"micro_batches", fmt::format("keep {}: more of them are not sure to gain, unless the "
                                                            "batch grows with them",
                                                            pipeline.microBatches)});
    }
    Recommendation larger = largerBatch(context, pipeline, best);
    larger.evidence.insert(larger.evidence.begin(), sweep);
    if (isProposed != plans.end() && best.microBatches != proposed)
        larger.evidence.push_back(
            fmt::format("{} names {}, the fewest that bring the bubble under its threshold; they gain {}, and {} are "
                        "the fewest within {} of the best",
                        diagnose::kBubble.id, proposed, text::durationText(std::max(0.0, isProposed->savingNs())),
                        best.microBatches, text::percentText(kCloseEnough)));
    advice.recommendations.push_back(std::move(larger));
}

void adviseVirtualStages(const AdviceContext& context, const facts::Pipeline& pipeline, Advice& advice) {
    const int counts[] = {2 * pipeline.virtualStages, 4 * pipeline.virtualStages};
    playAhead(context, {toVirtualStages(counts[0]), toVirtualStages(counts[1])});
    std::vector<Plan> plans;
    for (int count : counts)
        if (auto plan = tryPlan(context, {pipeline.microBatches, count, toVirtualStages(count), {}}))
            plans.push_back(std::move(*plan));
    const auto best = std::ranges::max_element(plans, {}, &Plan::savingNs);
    if (best == plans.end()) {
        advice.kept.push_back(
            {"virtual_stages", fmt::format("keep {}: the stages cannot be cut into more, or not with {} micro-batches",
                                           pipeline.virtualStages, pipeline.microBatches)});
        return;
    }
    if (!worthIt(context, best->step) || best->savingNs() <= kCloseEnough * context.analysis.stepNs) {
        advice.kept.push_back(
            {"virtual_stages", fmt::format("keep {}: more of them gain {} a step at most", pipeline.virtualStages,
                                           text::durationText(std::max(0.0, best->savingNs())))});
        return;
    }
    Recommendation r;
    r.area = "virtual_stages";
    r.title = fmt::format("{} virtual stages a rank instead of {}: an interleaved schedule", best->virtualStages,
                          pipeline.virtualStages);
    r.settings.launcher = {
        {"virtual_stages", std::to_string(best->virtualStages)},
        {"Megatron-LM", "--num-layers-per-virtual-pipeline-stage (layers / stages / virtual stages)"}};
    take(r, best->change, best->step);
    r.basis = "the schedule played with them; " + context.predictor.name;
    r.risk = "more messages between the stages; activations of up to (V-1)/V more micro-batches are kept";
    r.verify = "run again with them and compare the steps (rankscope analyze)";
    advice.recommendations.push_back(std::move(r));
}

}  // namespace

void adviseSchedule(const AdviceContext& context, Advice& advice) {
    if (!context.predictor.edited || context.analysis.layout.pipelines.empty()) return;
    facts::Pipeline pipeline = context.analysis.layout.pipelines.front();
    if (const auto& now = context.predictor.pipeline) {
        pipeline.schedule = now->schedule;
        pipeline.microBatches = now->microBatches;
        pipeline.virtualStages = now->virtualStages;
    }
    if (pipeline.microBatches < 1 || pipeline.stages.size() < 2) return;
    if (context.open("micro_batches")) adviseMicroBatches(context, pipeline, advice);
    if (context.open("virtual_stages")) adviseVirtualStages(context, pipeline, advice);
}

void setPrefetch(Settings& settings) {
    settings.fsdp = {{"forward_prefetch", "True"}, {"backward_prefetch", "BackwardPrefetch.BACKWARD_PRE"}};
    settings.accelerate = {{"fsdp_config.fsdp_forward_prefetch", "true"},
                           {"fsdp_config.fsdp_backward_prefetch", "BACKWARD_PRE"}};
    settings.deepspeed = {{"zero_optimization.stage", "3"}, {"zero_optimization.overlap_comm", "true"}};
}

void advisePrefetch(const AdviceContext& context, Advice& advice) {
    if (!context.predictor.edited || !context.open("overlap") || context.analysis.layout.zero.value_or(0) < 3) return;
    // A finding whose fix is more than that is answered by all of it.
    for (const job::Finding& finding : context.findings)
        if (finding.verdict == job::Verdict::found && finding.id == diagnose::kOverlap.id && finding.savingNs &&
            finding.changes.front().family != "prefetch")
            return;
    const auto step = context.predictor.edited(kAhead);
    if (!step) return;
    if (!worthIt(context, *step)) {
        advice.kept.push_back(
            {"prefetch", fmt::format("keep it: gathering one layer ahead gains {} a step, which is no more than chance",
                                     text::durationText(std::max(0.0, step->savingNs.expected)))});
        return;
    }
    Recommendation r;
    r.area = "overlap";
    r.title = "gather the next layer while this one computes: prefetch one layer ahead";
    setPrefetch(r.settings);
    take(r, kAhead, *step);
    r.basis = "each layer's all-gather issued one layer earlier; " + context.predictor.name;
    r.risk = "memory: the parameters of one more layer are held at a time";
    r.verify = "run again with it and compare the steps (rankscope analyze)";
    if (context.found(diagnose::kOverlap)) r.findings = {diagnose::kOverlap.id};
    advice.recommendations.push_back(std::move(r));
}

}  // namespace rankscope::recommend
