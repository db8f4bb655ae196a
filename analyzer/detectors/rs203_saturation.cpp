// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/rs203_saturation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/detectors/gradient_plan.h"
#include "analyzer/report/units.h"
#include "analyzer/timeline/operation.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

constexpr SaturationThresholds kThresholds;

/// Transfer of the step that no legal overlap can hide: all of it, less the compute it may lie under. Where the network is busy for longer than that compute, the first
/// all-gather, in front of all compute, is a part of its volume like any other.
/// Activations have nothing to hide behind, and every tensor-parallel job has them exposed: their volume is too much for the link where they take longer than all compute.
double unhideable(const CriticalStep& step, CommRole role, double claimedNs) {
    if (role == CommRole::activations) {
        const double exposed = step.exposedTransferNs() - claimedNs;
        return exposed > static_cast<double>(step.attribution->computeNs) ? exposed : 0;
    }
    const GradientPlan plan = planOf(step);
    double room = 0, first = 0;
    if (role != CommRole::shardedParameters) {
        room = std::max(plan.legalComputeNs(true), plan.lateness() > 0.75 ? plan.legalComputeNs(false) : 0.0);
    } else {
        // Behind the last reduce-scatter only the optimizer runs, and it needs the gradients.
        room = plan.backwardEnd;
        first = static_cast<double>(step.tasks[step.own.front()].exposedTransferNs);
    }
    // The last message sticks out of any plan.
    const auto tail = static_cast<double>(step.tasks[step.own.back()].transferNs());
    const double excess = step.transferNs() - room - claimedNs;
    if (excess <= 0) return 0;
    return std::clamp(excess + first, 0.0, std::max(0.0, step.exposedTransferNs() - tail - claimedNs));
}

struct LinkUse {
    double idealNs = 0;      // bytes at the ceiling
    double startupNs = 0;
    double actualNs = 0;
    bool sized = true;
};

LinkUse linkUse(const Analysis& analysis, const CriticalStep& step, const Communicator& communicator, double ceiling) {
    LinkUse use;
    const double hop = analysis.peaks.alphaPerHop(communicator);
    for (size_t i : step.own) {
        const CommTask& task = step.tasks[i];
        if (task.bytes < 0) {
            use.sized = false;
            continue;
        }
        const CostFit* fit = analysis.findFit(communicator.id, task.op);
        const double startup = hop > 0 ? hop * startupHops(task.op, communicator.size) : fit != nullptr ? fit->alphaNs : 0;
        use.idealNs += static_cast<double>(task.bytes) * busFactor(task.op, communicator.size) / ceiling;
        use.startupNs += std::min(startup, static_cast<double>(task.transferNs()));
        use.actualNs += static_cast<double>(task.transferNs());
    }
    return use;
}

}  // namespace

void detectSaturation(const Analysis& analysis, Claims& claims, std::vector<Finding>& findings) {
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        const CommRole role = where.role;
        if (role != CommRole::gradients && role != CommRole::shardedParameters && role != CommRole::replicas && role != CommRole::activations) continue;
        const Communicator& communicator = *where.first;
        const int64_t id = communicator.id;
        std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        if (role == CommRole::gradients) keepReductions(steps);
        if (steps.empty()) continue;
        const double explained = claims.explainedTransferNs(id);
        std::vector<double> costs, shares, startups, bandwidths;
        std::vector<double> bytes;
        const std::optional<double> ceiling = analysis.peaks.busCeiling(communicator);
        bool sized = true;
        for (const CriticalStep& step : steps) {
            costs.push_back(unhideable(step, role, explained));
            const LinkUse use = linkUse(analysis, step, communicator, ceiling.value_or(1));
            sized = sized && use.sized;
            if (use.actualNs <= 0) continue;
            shares.push_back((use.idealNs + use.startupNs) / use.actualNs);
            startups.push_back(use.startupNs / use.actualNs);
            bandwidths.push_back(use.idealNs * ceiling.value_or(1) / use.actualNs);
            bytes.push_back(planOf(step).bytes);
        }
        if (median(costs) <= 0) continue;

        Finding finding;
        finding.id = "RS203";
        finding.ranks = where.ranks;
        finding.affectedRanks = finding.ranks;
        finding.communicator = id;
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        finding.confidence = 0.8;
        if (!ceiling || !sized) {
            if (finding.verdict == Verdict::note) continue;
            finding.verdict = Verdict::inconclusive;
            finding.whyInconclusive = !sized ? "the sizes of the messages are unknown, so that their bandwidth cannot be compared with the link's"
                                             : "no link peak is known: set RANKSCOPE_LINKS (for instance \"intra:gbps=200;inter:gbps=40\") and analyse again";
        } else if (median(shares) < kThresholds.ceilingShare || median(startups) > kThresholds.largeShare) {
            continue;  // slower than the link can be, or start-up bound: other diagnoses
        }
        finding.cause = ceiling ? fmt::format("{} per step over communicator {} exceed what compute can hide; the link runs at {} of its ceiling, so only fewer bytes help",
                                              bytesText(median(bytes)), id, percentText(std::min(1.0, median(shares))))
                                : fmt::format("{} of communication per step cannot be hidden behind compute", durationText(median(costs)));
        if (ceiling) {
            finding.evidence.facts.push_back(fmt::format("bus bandwidth {:.1f} GB/s of {:.1f} GB/s ({}); with start-up it explains {} of the transfer time",
                                                         median(bandwidths), *ceiling, analysis.peaks.source, percentText(std::min(1.0, median(shares)))));
            finding.evidence.numbers = {{"busbw_bytes_per_ns", median(bandwidths)}, {"ceiling_bytes_per_ns", *ceiling}, {"ceiling_share", median(shares)}};
        }
        finding.evidence.facts.push_back(fmt::format("{} of transfer per step, {} more than the compute it may overlap", durationText(steps.front().transferNs()),
                                                     durationText(median(costs))));
        std::vector<CommTask> longest;
        for (size_t i : steps.front().own) longest.push_back(steps.front().tasks[i]);
        std::stable_sort(longest.begin(), longest.end(), [](const CommTask& a, const CommTask& b) { return a.transferNs() > b.transferNs(); });
        for (size_t k = 0; k < std::min<size_t>(3, longest.size()); ++k)
            if (longest[k].collectiveId != 0)
                finding.evidence.rows.push_back({"collective", longest[k].collectiveId, steps.front().rank->rank, "a large message at the ceiling"});
        if (role == CommRole::activations) {
            finding.fix = {"fewer tensor-parallel ranks, and pipeline or data parallelism in their place: a layer's compute per byte grows as the degree shrinks",
                           "keep the group on links as fast as NVLink; these messages wait for compute and compute for them"};
        } else if (role != CommRole::shardedParameters) {
            finding.fix = {"gradient accumulation with no_sync(): reduce every k-th micro-step only",
                           "bf16 gradients or a compression hook (DDP: register_comm_hook(None, bf16_compress_hook))", "a larger batch per rank: more compute for the same bytes"};
        } else {
            finding.fix = {"HSDP (ShardingStrategy.HYBRID_SHARD): gather inside the node, reduce between nodes",
                           "ZeRO-2 (reshard_after_forward=False) where memory allows: one all-gather less per layer",
                           "gradient accumulation or a larger batch per rank: more compute for the same bytes"};
        }
        if (role != CommRole::activations && analysis.layout.pipelineOf(steps.front().rank->rank) != nullptr) finding.verdict = Verdict::note;
        findings.push_back(std::move(finding));
    }
}

}  // namespace rankscope::analyzer
