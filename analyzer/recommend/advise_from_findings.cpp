// SPDX-License-Identifier: Apache-2.0
// What a finding proposes, in the languages settings are written in. Its saving and interval are the finding's own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::recommend {
namespace {

/// ZeRO-3 and FSDP shard parameters; the others reduce gradients in buckets.
bool sharded(const job::Analysis& analysis) {
    return analysis.layout.zero.value_or(0) >= 3;
}

/// Buckets of the finding's fix, MiB, where the replay has other ones than the present.
std::optional<double> bucketOf(const job::Finding& finding) {
    std::optional<double> mebibytes;
    for (const job::Change& change : finding.changes)
        if (change.family == "buckets") mebibytes = change.number("mb");
    return mebibytes;
}

void overlap(const AdviceContext& context, const job::Finding& finding, Recommendation& r) {
    r.area = "overlap";
    if (numberOf(finding, "lateness_ns").value_or(0) > 0)
        return;  // the program calls too late: no setting makes it call earlier
    if (numberOf(finding, "awaited_per_step").value_or(0) > 0) return;  // what waits is code: a hook, or a back-end
    if (sharded(context.analysis)) {
        r.title = "gather the next layer while this one computes: prefetch and overlap on";
        setPrefetch(r.settings);
        r.settings.fsdp["limit_all_gathers"] = "True";
        r.settings.deepspeed["zero_optimization.contiguous_gradients"] = "true";
        r.risk = "memory: the parameters of one more layer are held at a time";
    } else {
        const double mebibytes = bucketOf(finding).value_or(0);
        r.title = "reduce gradients while backward still runs";
        r.settings.ddp = {{"static_graph", "True"}};
        r.settings.deepspeed = {{"zero_optimization.overlap_comm", "true"}};
        if (mebibytes > 0) {
            r.title += fmt::format(", in buckets of {:.0f} MiB", mebibytes);
            const int elementBytes = gradientElementBytes(context.analysis);
            setBuckets(std::llround(mebibytes), elementBytes, elementBytes, r);
        }
        r.risk = "static_graph=True needs the same parameters to be used in every step; leave it out where they vary";
    }
}

void redundant(const AdviceContext& context, const job::Finding&, Recommendation& r) {
    r.area = "redundancy";
    r.title = "reduce gradients once per optimizer step, not once per micro-step";
    if (sharded(context.analysis))
        r.settings.fsdp = {{"set_requires_gradient_sync", "False on all micro-steps but the last"}};
    else
        r.settings.ddp = {{"no_sync()", "around all micro-steps but the last"}};
    r.risk = sharded(context.analysis) ? "memory: unsharded gradients are kept between micro-steps"
                                       : "none for DDP: gradients accumulate where they are";
}

void precision(const AdviceContext& context, const job::Finding&, Recommendation& r) {
    r.area = "precision";
    r.title = "reduce gradients in bf16: half the bytes";
    if (sharded(context.analysis))
        r.settings.fsdp = {{"mixed_precision.reduce_dtype", "torch.bfloat16"}};
    else
        r.settings.ddp = {
            {"register_comm_hook", "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook"}};
    r.settings.deepspeed = {{"communication_data_type", "\"bf16\""}};
    r.risk = "numerics: sums over many ranks lose digits in bf16; compare the loss over some hundred steps";
}

/// Half of what the environment allows. Without a limit there the trace does not tell how many channels NCCL takes, and
/// no number is known to be fewer.
void channels(const AdviceContext& context, const job::Finding&, Recommendation& r) {
    r.area = "channels";
    const int now = std::atoi(context.analysis.facts.text("env.NCCL_MAX_CTAS").c_str());
    if (now < 4) return;
    r.title =
        fmt::format("at most {} channels for NCCL instead of {}, so that it takes fewer SMs from the kernels beside it",
                    now / 2, now);
    r.settings.environment["NCCL_MAX_CTAS"] = std::to_string(now / 2);
    r.mayCureLess = true;
    r.risk =
        "too few channels cannot fill the link: communication that is exposed gets longer, which the gain does not "
        "count";
}

void allocator(const AdviceContext&, const job::Finding&, Recommendation& r) {
    r.area = "allocator";
    r.title = "keep memory instead of freeing and allocating it in every step";
    r.settings.environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
    r.mayCureLess = true;  // a program that empties its cache itself allocates again whatever is set
    r.risk = "none known; the pool keeps what it has";
}

void pinned(const AdviceContext&, const job::Finding&, Recommendation& r) {
    r.area = "copies";
    r.title = "copy from pinned memory, without blocking";
    r.settings.launcher = {{"DataLoader(pin_memory)", "True"}, {"tensor.to(non_blocking)", "True"}};
    r.settings.deepspeed = {{"zero_optimization.offload_optimizer.pin_memory", "true"}};
    r.risk = "pinned memory cannot be swapped out: mind the host's memory";
}

/// More of them of the same batch are judged by the replay (advise_schedule.cpp), or not at all; a larger batch trains
/// another way, and is what the finding itself proposes.
void microBatches(const AdviceContext&, const job::Finding&, Recommendation& r) {
    r.area = "micro_batches";
}

void buckets(const AdviceContext& context, const job::Finding& finding, Recommendation& r) {
    r.area = "buckets";
    const double bytes = numberOf(finding, "proposed_bucket_bytes").value_or(0);
    if (bytes <= 0) return;
    const auto mebi = std::max<int64_t>(1, std::llround(bytes / (1 << 20)));
    const int elementBytes = gradientElementBytes(context.analysis);
    r.title = fmt::format("buckets of {} MiB", mebi);
    setBuckets(mebi, elementBytes, elementBytes, r);
    r.risk = "memory: a bucket of gradients more; larger buckets leave later";
}

bool judged(const Advice& advice, const std::string& area) {
    const auto isIt = [&](const auto& one) { return one.area == area; };
    return std::ranges::any_of(advice.recommendations, isIt) || std::ranges::any_of(advice.kept, isIt);
}

/// What the finding's repair gains, and where that comes from.
void setPrediction(const AdviceContext& context, const job::Finding& finding, Recommendation& r) {
    r.savingKnown = finding.savingNs.has_value();
    r.meanStepNs = finding.meanStepNs;
    r.savingNs = finding.savingNs.value_or(facts::Estimate{0, 0, finding.costNs});
    r.basis = r.savingKnown ? "the step played with it; " + context.predictor.name
                            : "what the cause was seen to take: its repair was not played";
    if (!r.savingKnown) return;
    for (const job::Change& change : finding.changes) r.change.edits.push_back(change.text());
}

struct Translation {
    const diagnose::Diagnosis* diagnosis;
    void (*write)(const AdviceContext&, const job::Finding&, Recommendation&);
};
constexpr Translation kTranslations[] = {{&diagnose::kBubble, microBatches},   {&diagnose::kOverlap, overlap},
                                         {&diagnose::kSmallMessages, buckets}, {&diagnose::kRedundant, redundant},
                                         {&diagnose::kContention, channels},   {&diagnose::kFullPrecision, precision},
                                         {&diagnose::kAllocator, allocator},   {&diagnose::kPageable, pinned}};

/// The setting that the finding's fix amounts to; empty settings where it is none.
Recommendation settingFor(const AdviceContext& context, const job::Finding& finding) {
    Recommendation setting;
    for (const Translation& translation : kTranslations)
        if (finding.id == translation.diagnosis->id) translation.write(context, finding, setting);
    return setting;
}

bool counts(const AdviceContext& context, const job::Finding& finding) {
    return finding.verdict == job::Verdict::found && finding.worthNs() > context.noiseNs;
}

}  // namespace

std::optional<double> numberOf(const job::Finding& finding, std::string_view name) {
    for (const auto& [key, value] : finding.evidence.numbers)
        if (key == name) return value;
    return std::nullopt;
}

bool AdviceContext::found(const diagnose::Diagnosis& diagnosis) const {
    return std::ranges::any_of(findings, [&](const job::Finding& finding) {
        return finding.id == diagnosis.id && finding.verdict == job::Verdict::found;
    });
}

std::optional<double> AdviceContext::proposed(const diagnose::Diagnosis& diagnosis, std::string_view number) const {
    for (const job::Finding& finding : findings)
        if (finding.id == diagnosis.id && finding.verdict == job::Verdict::found)
            if (const auto value = numberOf(finding, number)) return value;
    return std::nullopt;
}

bool translates(const diagnose::Diagnosis& diagnosis) {
    return std::ranges::find(kTranslations, &diagnosis, &Translation::diagnosis) != std::end(kTranslations);
}

void adviseFromFindings(const AdviceContext& context, Advice& advice) {
    std::vector<Recommendation> more;
    for (const job::Finding& finding : context.findings) {
        if (!counts(context, finding)) continue;
        Recommendation setting = settingFor(context, finding);
        if (setting.settings.empty() || !context.open(setting.area)) continue;
        if (judged(advice, setting.area)) continue;  // with more than one candidate
        setting.findings = {finding.id};
        setting.evidence = finding.evidence.facts;
        setting.evidence.insert(setting.evidence.begin(), finding.cause);
        setPrediction(context, finding, setting);
        if (setting.mayCureLess)
            setting.evidence.emplace_back(
                "how much of the cause this setting takes away is not to be seen: it gains at most what all of it "
                "takes");
        if (!setting.savingKnown || setting.mayCureLess) setting.certainty = Certainty::tryAndMeasure;
        setting.verify =
            fmt::format("run again with it and compare the steps (rankscope analyze): {} goes", finding.id);
        more.push_back(std::move(setting));
    }
    std::ranges::move(more, std::back_inserter(advice.recommendations));
}

std::vector<Recommendation> fixesFor(const AdviceContext& context, const Advice& advice) {
    std::vector<Recommendation> fixes;
    const std::string run = text::shellWord(context.runName);
    for (const job::Finding& finding : context.findings) {
        if (!counts(context, finding)) continue;
        const Recommendation setting = settingFor(context, finding);
        if (!setting.settings.empty() ||
            judged(advice, finding.id == diagnose::kAlgorithm.id ? "algorithm" : setting.area))
            continue;
        const diagnose::Diagnosis* diagnosis = diagnose::findDiagnosis(finding.id);
        const bool ofMachine = diagnosis != nullptr && diagnosis->cureAt == diagnose::CureAt::machine;
        Recommendation fix;
        fix.kind = ofMachine ? AdviceKind::repair : AdviceKind::program;
        fix.area = "finding";
        fix.title = fmt::format("{}: {}", finding.title, finding.cause);
        fix.findings = {finding.id};
        fix.ranks = finding.ranks;
        fix.steps = finding.fix;
        fix.evidence = finding.evidence.facts;
        setPrediction(context, finding, fix);
        if (fix.savingKnown)
            fix.basis = fmt::format("the step played without it (rankscope whatif {}{}); {}", run,
                                    job::asOptions(finding.changes), context.predictor.name);
        fix.verify = fmt::format(
            "afterwards run the job again, as NEW: `rankscope compare {} NEW` then shows a shorter step, and {} gone",
            run, finding.id);
        fixes.push_back(std::move(fix));
    }
    return fixes;
}

}  // namespace rankscope::recommend
