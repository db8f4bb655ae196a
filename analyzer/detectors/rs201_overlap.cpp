// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/rs201_overlap.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/detectors/gradient_plan.h"
#include "analyzer/report/units.h"
#include "analyzer/timeline/operation.h"
#include "analyzer/timeline/statistics.h"
#include "analyzer/timeline/step_model.h"

namespace rankscope::analyzer {
namespace {

constexpr OverlapThresholds kThresholds;

/// What could have been hidden in one step, and by which of the mistakes.
struct Hideable {
    double ns = 0;
    double gatherNs = 0;      // all-gathers that could start during the compute before them
    double scatterNs = 0;     // reduce-scatters that the compute behind them did not have to wait for
    bool sameStream = false;
    bool oneMessage = false;
    bool late = false;
};

/// Gradients leave during backward as they appear. Nothing is claimed when they do: what is exposed then is the tail or the volume.
Hideable hideableGradients(const CriticalStep& step, const CostFit* fit) {
    Hideable result;
    const GradientPlan plan = planOf(step);
    result.oneMessage = plan.messages == 1;
    result.late = plan.lateness() > kThresholds.lateStart;
    if (!result.late) return result;
    const double before = modelStepNs(modelTasks(step.tasks), plan.computeNs);
    double alpha = 0;
    double beta = plan.bytes > 0 ? plan.transferNs / plan.bytes : 0;
    if (fit != nullptr && fit->betaNsPerByte > 0) {
        alpha = fit->alphaNs;
        beta = fit->betaNsPerByte;
    }
    // Without sizes eight buckets stand for any sensible number: an eighth stays exposed.
    const double bucket = plan.bytes > 0 ? kThresholds.bucketMebi * 1024 * 1024 : 1;
    double after = 0;
    if (plan.bytes > 0) {
        after = stepWithBuckets(step, plan, step.own, bucket, alpha, beta);
    } else {
        after = before - std::min(plan.transferNs, plan.backwardNs()) * 7 / 8;
    }
    result.ns = std::clamp(before - after, 0.0, step.exposedTransferNs());
    return result;
}

/// Sharded parameters: an all-gather may run under the compute before it, a reduce-scatter under the compute behind it. Each stretch of compute
/// without communication hides only as much as it is long. The last reduce-scatter is followed by the optimizer, which needs it.
Hideable hideableShards(const CriticalStep& step) {
    Hideable result;
    size_t lastScatter = step.tasks.size();
    for (size_t i = 0; i < step.tasks.size(); ++i)
        if (step.tasks[i].op == store::Op::reduceScatter) lastScatter = i;
    std::vector<double> gap(step.tasks.size() + 1, 0);  // gap[i]: compute without communication in front of task i
    for (size_t i = 0; i < step.tasks.size(); ++i) gap[i] = static_cast<double>(step.tasks[i].idleNetworkBeforeNs);
    const auto take = [&](size_t at, double wanted) {
        const double taken = std::min(gap[at], wanted);
        gap[at] -= taken;
        return taken;
    };
    for (size_t i : step.own) {
        const CommTask& task = step.tasks[i];
        const auto exposed = static_cast<double>(task.exposedTransferNs);
        if (exposed <= 0) continue;
        if (task.op == store::Op::allGather) {
            for (size_t at = i + 1; at-- > 0;) {
                if (step.tasks[at].idleNetworkBeforeNs == 0) continue;  // follows another communication at once
                result.gatherNs += take(at, exposed);
                break;
            }
        } else if (task.op == store::Op::reduceScatter && i != lastScatter) {
            for (size_t at = i + 1; at <= lastScatter && at < step.tasks.size(); ++at) {
                if (step.tasks[at].idleNetworkBeforeNs == 0) continue;
                result.scatterNs += take(at, exposed);
                break;
            }
        }
    }
    result.ns = result.gatherNs + result.scatterNs;
    return result;
}

void explain(const std::vector<Hideable>& steps, CommRole role, Finding& finding) {
    std::vector<double> gathers, scatters;
    for (const Hideable& step : steps) {
        gathers.push_back(step.gatherNs);
        scatters.push_back(step.scatterNs);
    }
    const bool sameStream = std::all_of(steps.begin(), steps.end(), [](const Hideable& h) { return h.sameStream; });
    if (role == CommRole::gradients) {
        const bool one = std::all_of(steps.begin(), steps.end(), [](const Hideable& h) { return h.oneMessage; });
        finding.cause = one ? "one bucket: all gradients leave in a single message after backward"
                            : "all gradient communication starts only after backward: overlap is off";
        if (sameStream) finding.cause = "gradients are communicated on the compute stream: compute and communication exclude each other";
        finding.fix = {fmt::format("DDP: bucket_cap_mb={:.0f} and the default hooks (do not reduce by hand after backward())", kThresholds.bucketMebi),
                       "DeepSpeed: \"overlap_comm\": true, \"reduce_bucket_size\": 25e6; Megatron: --overlap-grad-reduce"};
    } else {
        const bool scattersToo = median(scatters) > median(gathers) / 4;
        finding.cause = scattersToo ? "prefetch is off: each all-gather starts only when its layer is due, and compute waits for the reduce-scatters in front of it too"
                                    : "prefetch is off: each all-gather starts only when its layer is due";
        if (sameStream) finding.cause = "parameters and gradients are communicated on the compute stream: compute and communication exclude each other";
        finding.fix = {"FSDP: forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE, limit_all_gathers as default",
                       "FSDP2: set_modules_to_forward_prefetch / set_modules_to_backward_prefetch; DeepSpeed: \"overlap_comm\": true, stage3_prefetch_bucket_size"};
    }
    finding.evidence.numbers.emplace_back("all_gather_hideable_ns", median(gathers));
    finding.evidence.numbers.emplace_back("reduce_scatter_hideable_ns", median(scatters));
}

}  // namespace

void detectPoorOverlap(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings) {
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        const CommRole role = where.role;
        if (role != CommRole::gradients && role != CommRole::shardedParameters) continue;
        const int64_t id = where.first->id;
        std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        if (role == CommRole::gradients) keepReductions(steps);
        if (steps.empty()) continue;
        std::vector<Hideable> hideable;
        std::vector<double> costs, exposed, overlap;
        for (const CriticalStep& step : steps) {
            Hideable h = role == CommRole::gradients ? hideableGradients(step, analysis.findFit(id, step.tasks[step.own.front()].op)) : hideableShards(step);
            h.sameStream = std::all_of(step.own.begin(), step.own.end(), [&](size_t i) { return step.tasks[i].streamId == step.rank->computeStreamId; });
            hideable.push_back(h);
            costs.push_back(h.ns);
            exposed.push_back(step.exposedTransferNs());
            overlap.push_back(step.transferNs() > 0 ? 1 - step.exposedTransferNs() / step.transferNs() : 1);
        }
        // A storm explains its own part.
        for (double& cost : costs) cost = std::max(0.0, cost - claims.explainedTransferNs(id, "RS201"));
        if (median(costs) <= 0 || median(overlap) > kThresholds.overlapTarget) continue;

        Finding finding;
        finding.id = "RS201";
        finding.ranks = where.ranks;
        finding.affectedRanks = finding.ranks;
        finding.communicator = id;
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        explain(hideable, role, finding);
        finding.evidence.facts = {
            fmt::format("{} of communication a step is exposed, {} is hidden behind compute (target: over {})", durationText(median(exposed)),
                        percentText(median(overlap)), percentText(kThresholds.overlapTarget)),
            fmt::format("{} of it would fit under compute it may overlap", durationText(median(costs))),
        };
        finding.evidence.numbers.insert(finding.evidence.numbers.begin(),
                                        {{"exposed_transfer_ns_per_step", median(exposed)}, {"overlap_ratio", median(overlap)}, {"hideable_ns_per_step", median(costs)}});
        std::vector<CommTask> longest;
        for (size_t i : steps.front().own) longest.push_back(steps.front().tasks[i]);
        std::stable_sort(longest.begin(), longest.end(), [](const CommTask& a, const CommTask& b) { return a.exposedTransferNs > b.exposedTransferNs; });
        for (size_t k = 0; k < std::min<size_t>(3, longest.size()); ++k)
            finding.evidence.rows.push_back({"kernel", longest[k].kernelId, steps.front().rank->rank,
                                             fmt::format("{} exposed for {}", store::toText(longest[k].op), durationText(static_cast<double>(longest[k].exposedTransferNs)))});
        finding.confidence = 0.85;
        // A pipeline accumulates gradients over its micro-batches and sends them once, in the cool-down: only the last backward could hide them.
        if (analysis.layout.pipelineOf(steps.front().rank->rank) != nullptr) finding.verdict = Verdict::note;
        if (finding.verdict == Verdict::found)
            for (int64_t each : where.ids) claims.takeTransfer("RS201", each, *finding.savingNsPerStep);
        findings.push_back(std::move(finding));
    }
}

}  // namespace rankscope::analyzer
