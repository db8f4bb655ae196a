// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/rs203_saturation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/gradient_plan.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/rs201_overlap.h"
#include "analyzer/facts/communicator_name.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

constexpr SaturationThresholds kThresholds;

/// Gradients that leave behind backward do so by RS201's measure.
constexpr double kLate = OverlapThresholds{}.lateStart;

/// Start-up of a collective, ns: by the configured link, else by the fit; 0 where neither is known.
double startUpNs(const job::Analysis& analysis, const facts::Communicator& communicator, store::Op op) {
    const double hop = analysis.peaks.alphaPerHop(communicator);
    if (hop > 0) return hop * facts::startupHops(op, communicator.size);
    const costs::CostFit* fit = analysis.findFit(communicator.id, op);
    return fit != nullptr ? fit->alphaNs : 0;
}

/// 0 up to one share of the whole, 1 from another one on: a diagnosis that comes by degrees.
double rising(double part, double whole, double fromShare, double toShare = 1) {
    return whole > 0 ? std::clamp((part / whole - fromShare) / (toShare - fromShare), 0.0, 1.0) : 1;
}

/// Transfer of the step that no legal overlap can hide: all of it, less the compute it may lie under, and the ends. The
/// first all-gather lies in front of all compute and the last message behind it, whatever the order: with a network
/// that rests they are what every job has, the busier it is the more they are a part of its volume like any other,
/// which a faster link or fewer bytes shorten. Activations have nothing to hide behind, and every tensor-parallel job
/// has them exposed: they are too much for the link the more they take, in full where they take as long as all compute.
double unhideable(const CriticalStep& step, facts::CommRole role, double claimedNs) {
    if (role == facts::CommRole::activations) {
        const double exposed = std::max(0.0, step.exposedTransferNs() - claimedNs);
        return exposed * rising(exposed, static_cast<double>(step.attribution->computeNs), kThresholds.activationShare);
    }
    const GradientPlan plan = planOf(step);
    double room = 0, first = 0;
    if (role != facts::CommRole::shardedParameters) {
        room = std::max(plan.legalComputeNs(true), plan.lateness() > kLate ? plan.legalComputeNs(false) : 0.0);
    } else {
        // Behind the last reduce-scatter only the optimizer runs, and it needs the gradients.
        room = plan.backwardEnd;
        first = static_cast<double>(step.tasks[step.own.front()].exposedTransferNs);
    }
    const facts::CommTask& last = step.tasks[step.own.back()];
    const auto tail = static_cast<double>(last.transferNs()), behind = static_cast<double>(last.exposedTransferNs);
    const double wanted = step.transferNs() - claimedNs;
    // One of a few messages is no end: smaller ones would hide (RS201, RS202).
    const bool several = static_cast<int>(step.own.size()) >= kThresholds.fewestMessages;
    const double busy = several ? rising(wanted, room, kThresholds.busyShare, kThresholds.restlessShare) : 0;
    const double between =
        std::min(std::max(0.0, wanted - room), std::max(0.0, step.exposedTransferNs() - tail - claimedNs));
    return std::clamp(between + (first + behind) * busy, 0.0,
                      std::max(0.0, step.exposedTransferNs() - tail * (1 - busy) - claimedNs));
}

/// What is exposed because messages of gradients stand in line: the reductions that follow each other at once up to the
/// last one, and parameters that come back one after the other while forward runs. The last reduction and the first
/// gather stick out of any plan.
double inLineNs(const CriticalStep& step, const CriticalStep& reductions, double claimedNs) {
    double waiting = 0;
    if (planOf(reductions).lateness() <= kLate) {
        const std::vector<size_t>& own = reductions.own;
        for (size_t k = own.size(); k-- > 0;) {
            const facts::CommTask& message = reductions.tasks[own[k]];
            if (message.exposedTransferNs == 0) break;
            waiting += static_cast<double>(message.exposedTransferNs);
            if (k == 0 ||
                message.startNs - reductions.tasks[own[k - 1]].endNs > static_cast<int64_t>(kThresholds.atOnceNs))
                break;
        }
        waiting = std::max(0.0, waiting - static_cast<double>(reductions.tasks[own.back()].transferNs()));
    }
    const facts::CommTask* before = nullptr;
    double exposed = 0, computed = 0, transfer = 0;
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        if (task.op != store::Op::allGather) continue;
        transfer += static_cast<double>(task.transferNs());
        if (before != nullptr) {
            exposed += static_cast<double>(task.exposedTransferNs);
            computed += static_cast<double>(task.computeBeforeNs - before->computeBeforeNs);
        }
        before = &task;
    }
    if (computed > kThresholds.begunShare * transfer) waiting += exposed;
    return std::max(0.0, waiting - claimedNs);
}

struct LinkUse {
    double idealNs = 0;  // bytes at the ceiling
    double startupNs = 0;
    double actualNs = 0;
    bool sized = true;
};

LinkUse linkUse(const job::Analysis& analysis, const CriticalStep& step, const facts::Communicator& communicator,
                double ceiling) {
    LinkUse use;
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        if (task.bytes < 0) {
            use.sized = false;
            continue;
        }
        const double startup = startUpNs(analysis, communicator, task.op);
        use.idealNs += static_cast<double>(task.bytes) * facts::busFactor(task.op, communicator.size) / ceiling;
        use.startupNs += std::min(startup, static_cast<double>(task.transferNs()));
        use.actualNs += static_cast<double>(task.transferNs());
    }
    return use;
}

}  // namespace

void detectSaturation(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        const facts::CommRole role = where.role;
        if (role != facts::CommRole::gradients && role != facts::CommRole::shardedParameters &&
            role != facts::CommRole::replicas && role != facts::CommRole::activations)
            continue;
        const facts::Communicator& communicator = *where.first;
        if (communicator.identity == "assumed") continue;  // its size is a guess, and with it the bandwidth
        const int64_t id = communicator.id;
        std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        const std::vector<CriticalStep> all = steps;
        if (role == facts::CommRole::gradients) keepReductions(steps);
        if (steps.empty()) continue;
        const double explained = claims.explainedTransferNs(id);
        std::vector<double> inLine, costs, shares, startups, bandwidths;
        std::vector<double> bytes;
        const std::optional<double> ceiling = analysis.peaks.busCeiling(communicator);
        bool sized = true;
        for (const CriticalStep& step : steps) {
            costs.push_back(unhideable(step, role, explained));
            const auto whole = std::find_if(all.begin(), all.end(), [&](const CriticalStep& other) {
                return other.tasks.front().step == step.tasks.front().step;
            });
            inLine.push_back(role == facts::CommRole::gradients ? inLineNs(*whole, step, explained) : 0);
            const LinkUse use = linkUse(analysis, step, communicator, ceiling.value_or(1));
            sized = sized && use.sized;
            if (use.actualNs <= 0) continue;
            shares.push_back((use.idealNs + use.startupNs) / use.actualNs);
            startups.push_back(use.startupNs / use.actualNs);
            bandwidths.push_back(use.idealNs * ceiling.value_or(1) / use.actualNs);
            bytes.push_back(planOf(step).bytes);
        }
        const bool tooMuch = facts::median(costs) >= facts::median(inLine);
        if (!tooMuch) costs = inLine;
        const bool reached =
            analysis.peaks.atLeast(communicator);  // only: at its own best a link is always at its ceiling
        if (facts::median(costs) <= 0 || (!tooMuch && !ceiling)) continue;
        if ((!ceiling || reached) && role == facts::CommRole::activations && communicator.nodes > 1)
            continue;  // RS207 speaks of them

        const std::string together = communicator.nodes > 1 && communicator.smallestNode > 1
                                         ? fmt::format(" (the {} cards of a node together)", communicator.smallestNode)
                                         : std::string();
        job::Finding finding;
        finding.id = "RS203";
        finding.ranks = where.ranks;
        finding.affectedRanks = finding.ranks;
        finding.communicator = id;
        setCost(analysis, costs, finding);
        if (!tooMuch && finding.severity < CommonThresholds::kNoteShare) continue;
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        finding.confidence = 0.8;
        const bool judged = ceiling && sized && !reached;
        if (ceiling && sized &&
            (facts::median(shares) < (costs::isNominal(analysis.peaks.ceilingKind(communicator))
                                          ? kThresholds.nominalShare
                                          : kThresholds.ceilingShare) ||
             facts::median(startups) > kThresholds.largeShare))
            continue;  // slower than the link can be, or start-up bound: other diagnoses
        if (!judged) {
            if (finding.verdict == job::Verdict::note) continue;
            finding.verdict = job::Verdict::inconclusive;
            finding.whyInconclusive = !sized ? "the sizes of the messages are unknown, so that their bandwidth cannot "
                                               "be compared with the link's"
                                      : reached
                                          ? fmt::format(
                                                "no link peak is known, only that {} of this job reached {:.1f} GB/s: "
                                                "if these links can do more, they are under-used (RS204), else "
                                                "the volume is too much for them; tell the peaks: {}",
                                                communicator.nodes > 1 ? "communication between nodes" + together
                                                                       : "communication inside nodes",
                                                *ceiling, costs::kTellLinks)
                                          : std::string("no link peak is known: ") + costs::kTellLinks;
        }
        finding.cause =
            ceiling && !reached
                ? fmt::format("{} per step over {} {}; the link runs at {} of its ceiling, so only fewer bytes help",
                              text::bytesText(facts::median(bytes)),
                              facts::communicatorName(analysis.facts, analysis.layout, id),
                              tooMuch ? "exceed what compute can hide" : "stand in line where compute ends or begins",
                              text::percentText(std::min(1.0, facts::median(shares))))
                : fmt::format("{} of communication per step cannot be hidden behind compute",
                              text::durationText(facts::median(costs)));
        if (ceiling) {
            finding.evidence.facts.push_back(fmt::format(
                "bus bandwidth {:.1f} GB/s of {}{:.1f} GB/s{} ({}); with start-up it explains {} of the transfer time",
                facts::median(bandwidths), reached ? "at least " : "", *ceiling, together, analysis.peaks.source,
                text::percentText(std::min(1.0, facts::median(shares)))));
            finding.evidence.numbers = {{"busbw_bytes_per_ns", facts::median(bandwidths)},
                                        {"ceiling_bytes_per_ns", *ceiling},
                                        {"ceiling_share", facts::median(shares)}};
        }
        finding.evidence.facts.push_back(
            tooMuch
                ? fmt::format("{} of transfer per step, {} of it at the ends of communication or more than the "
                              "compute it may overlap",
                              text::durationText(steps.front().transferNs()), text::durationText(facts::median(costs)))
                : fmt::format("{} of transfer per step; {} of it, and of what comes back, only stand in line "
                              "behind other messages",
                              text::durationText(steps.front().transferNs()),
                              text::durationText(facts::median(costs))));
        std::vector<facts::CommTask> longest;
        for (size_t i : steps.front().own) longest.push_back(steps.front().tasks[i]);
        std::stable_sort(longest.begin(), longest.end(), [](const facts::CommTask& a, const facts::CommTask& b) {
            return a.transferNs() > b.transferNs();
        });
        for (size_t k = 0; k < std::min<size_t>(3, longest.size()); ++k)
            if (longest[k].collectiveId != 0)
                finding.evidence.rows.push_back({"collective", longest[k].collectiveId, steps.front().rank->rank,
                                                 "a large message at the ceiling"});
        if (role == facts::CommRole::activations) {
            finding.fix = {
                "fewer tensor-parallel ranks, and pipeline or data parallelism in their place: a layer's compute per "
                "byte grows as the degree shrinks",
                "keep the group on links as fast as NVLink; these messages wait for compute and compute for them"};
        } else if (role != facts::CommRole::shardedParameters) {
            finding.fix = {"gradient accumulation with no_sync(): reduce every k-th micro-step only",
                           "bf16 gradients or a compression hook (DDP: register_comm_hook(None, bf16_compress_hook))",
                           "a larger batch per rank: more compute for the same bytes"};
        } else {
            // On one node, or with one rank on each, no smaller group of neighbours could shard: HSDP is then what
            // runs, or DDP.
            const std::string& host = analysis.facts.findRank(steps.front().rank->rank)->host;
            if (communicator.nodes > 1 && communicator.size > communicator.nodes)
                finding.fix.push_back(
                    "HSDP (ShardingStrategy.HYBRID_SHARD): gather inside the node, reduce between nodes");
            else if (communicator.nodes <= 1 && host.empty())
                finding.fix.push_back(
                    "where the ranks are on several nodes, with several on each (not recorded here): "
                    "HSDP (ShardingStrategy.HYBRID_SHARD)");
            finding.fix.push_back(
                "ZeRO-2 (reshard_after_forward=False) where memory allows: one all-gather less per layer");
            finding.fix.push_back("gradient accumulation or a larger batch per rank: more compute for the same bytes");
        }
        if (role != facts::CommRole::activations && analysis.layout.pipelineOf(steps.front().rank->rank) != nullptr)
            finding.verdict = job::Verdict::note;
        findings.push_back(std::move(finding));
    }
}

std::string missingForSaturation(const job::Analysis& analysis) {
    const std::string communicators = withoutCommunicators(analysis);
    if (!communicators.empty()) return communicators;
    const std::initializer_list<facts::CommRole> judged{facts::CommRole::gradients, facts::CommRole::shardedParameters,
                                                        facts::CommRole::replicas, facts::CommRole::activations};
    const std::string sizes = withoutSizes(analysis, judged);
    if (!sizes.empty()) return sizes;
    const std::string times = withoutTransferTimes(analysis);
    return times.empty() ? withoutLinkPeak(analysis, judged) : times;
}

}  // namespace rankscope::diagnose
