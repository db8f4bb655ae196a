// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/micro_steps.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs206 {
namespace {

/// Gradients are worth one reduction per optimizer step: what the step gains without those of all micro-steps but the
/// last.
double savingWithoutRepeats(const CriticalStep& step, const GradientRepeats& repeats) {
    std::vector<double> times = transfersOf(step);
    const size_t kept = repeats.reductions.size() / repeats.microSteps;
    for (size_t i = 0; i + kept < repeats.reductions.size(); ++i) times[repeats.reductions[i]] = 0;
    return savedAtMost(step, times);
}

void describe(const CommunicatorClass& where, const CriticalStep& step, const GradientRepeats& repeats, bool sharded,
              job::Finding& finding) {
    double bytes = 0, exposed = 0;
    for (size_t i : repeats.reductions) {
        bytes += static_cast<double>(step.tasks[i].bytes);
        exposed += static_cast<double>(step.tasks[i].exposedTransferNs);
    }
    const auto k = static_cast<double>(repeats.microSteps);
    finding.cause =
        fmt::format("the same gradients are reduced in each of {} micro-steps of an optimizer step; once is enough",
                    repeats.microSteps);
    finding.evidence.facts = {
        fmt::format(
            "{} reductions a step are {} times the same sequence of {} messages, one per forward and backward pass",
            repeats.reductions.size(), repeats.microSteps, repeats.reductions.size() / repeats.microSteps),
        fmt::format("{} a step over {} ranks, {} of it for nothing; {} exposed", text::bytesText(bytes),
                    where.first->size, text::bytesText(bytes * (k - 1) / k), text::durationText(exposed))};
    finding.evidence.numbers = {{"micro_steps", k},
                                {"bytes_per_step", bytes},
                                {"redundant_bytes_per_step", bytes * (k - 1) / k},
                                {"exposed_ns_per_step", exposed}};
    const size_t period = repeats.reductions.size() / repeats.microSteps;
    for (size_t i = 0; i < repeats.reductions.size() && finding.evidence.rows.size() < 4; i += period) {
        const facts::CommTask& task = step.tasks[repeats.reductions[i]];
        if (task.collectiveId != 0)
            finding.evidence.rows.push_back({"collective", task.collectiveId, step.rank->rank,
                                             fmt::format("first reduction of micro-step {}", i / period)});
    }
    if (sharded)
        finding.fix = {
            "FSDP: no_sync() around all micro-steps but the last (FSDP2: set_requires_gradient_sync(False)); gradients "
            "then stay unsharded: one more copy of them in memory",
            "or fewer, larger micro-steps"};
    else
        finding.fix = {
            "DDP: `with model.no_sync():` around forward and backward of all micro-steps but the last; Lightning and "
            "Accelerate do so by accumulate_grad_batches / accumulate()",
            "DeepSpeed: gradient_accumulation_steps instead of a loop of your own; Megatron: no_sync_func"};
}

void detectRedundant(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        if (where.role != facts::CommRole::gradients && where.role != facts::CommRole::shardedParameters &&
            where.role != facts::CommRole::replicas)
            continue;
        const std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        std::vector<double> costs;
        std::vector<GradientRepeats> found;
        for (const CriticalStep& step : steps) {
            found.push_back(findRepeats(step));
            costs.push_back(found.back().microSteps > 1 ? savingWithoutRepeats(step, found.back()) : 0);
        }
        const size_t repeated = static_cast<size_t>(
            std::count_if(found.begin(), found.end(), [](const GradientRepeats& r) { return r.microSteps > 1; }));
        if (steps.empty() || repeated * 2 <= found.size() || facts::median(costs) <= 0) continue;
        const size_t typical = static_cast<size_t>(
            std::find_if(found.begin(), found.end(), [](const GradientRepeats& r) { return r.microSteps > 1; }) -
            found.begin());
        job::Finding finding;
        finding.id = "RS206";
        finding.ranks = finding.affectedRanks = where.ranks;
        finding.communicator = where.first->id;
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, steps[typical].rank->rank, finding);
        const CriticalStep& shown = shownStep(analysis, steps, finding);
        const GradientRepeats& repeats = found[static_cast<size_t>(&shown - steps.data())];
        const bool isRepeated = repeats.microSteps > 1;
        describe(where, isRepeated ? shown : steps[typical], isRepeated ? repeats : found[typical],
                 where.role == facts::CommRole::shardedParameters, finding);
        if (finding.verdict == job::Verdict::found)
            for (int64_t id : where.ids) claims.takeTransfer("RS206", id, finding.costNs);
        findings.push_back(std::move(finding));
    }
}

std::string missingForRedundant(const job::Analysis& analysis) {
    return withoutCommunicators(analysis);
}

Changes reducedOnce(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> microSteps = number(f, "micro_steps");
    return microSteps ? Changes{{"reduce-once", {{"micro-steps", fmt::format("{:.0f}", *microSteps)}}}} : Changes();
}

}  // namespace

const Diagnosis kRedundant{
    .id = "RS206",
    .title = "redundant communication",
    .definition =
        "Within one optimizer step the same sequence of gradient reductions (operation, type, sizes) repeats once per "
        "micro-step, each behind a forward and a backward pass: only the last is needed, the gradients can be added up "
        "locally. The cost is what the step gains without the others.",
    .thresholds = {{"spacing", MicroStepThresholds::kSpacing, "of a micro-step",
                    "micro-steps do the same work: their reductions begin evenly spaced in the compute"},
                   {"pause", MicroStepThresholds::kPause, "times the usual distance",
                    "a forward pass, half of backward, lies in front of each repeat: two buckets already give 2"}},
    .falsePositives =
        "Equal buckets of one backward pass repeat too, but not behind a forward pass each. ZeRO-2 and FSDP hold one "
        "more copy of the gradients without the repeats: where memory is short they are the price. What hides behind "
        "compute costs nothing and is a note.",
    .fix = "no_sync() around all micro-steps but the last, or the framework's own accumulation.",
    .hasSettings = true,
    .hint =
        "Framed is communication that could be left out: the same data goes over the network more often than it must.",
    .detect = detectRedundant,
    .missing = missingForRedundant,
    .repair = reducedOnce,
};

}  // namespace rs206
}  // namespace rankscope::diagnose
