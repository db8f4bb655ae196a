// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/reached_share.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/gradient_plan.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/link_probes.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs203 {
namespace {

constexpr Threshold kAtCeiling{
    "at the ceiling", job::LinkProbeThresholds::kAtCeiling,
    "x the time at the share of the peak that healthy links reach",
    "a job's step may take a fifth of what nccl-tests reach; RS204's slow links begin further on, by what the formulas "
    "may be off by, and in between it is inconclusive"};
constexpr Threshold kChoiceShare{"choice share", 0.7, "of what the best algorithm and protocol reach",
                                 "PAT and trees reach so much of a ring; below it the choice is the question (RS205)"};
constexpr Threshold kBusyShare{"busy share", 0.7, "of the compute that transfer may lie under",
                               "from here on the ends count, too: the first gather and the last reduction"};
constexpr Threshold kRestlessShare{
    "restless share", 0.9, "of that compute",
    "from here on they count in full: a network that hardly rests is short of bandwidth"};
constexpr Threshold kFewestMessages{
    "fewest messages", 4, "a step",
    "with fewer the first and the last are no ends but most of the volume, and smaller ones would hide"};
constexpr Threshold kActivationShare{
    "activation share", 0.5, "of compute",
    "from here on activations count as volume, in full where they take as long as all compute"};
constexpr Threshold kAtOnceUs{
    "at once", 10, "us", "from one message to the next of its stream: a launch gap, so the later one stood in line"};
constexpr Threshold kBegunShare{"begun share", 0.2, "of the time in which parameters come back",
                                "so much compute meanwhile means that forward has begun and waits for them"};
constexpr Threshold kLargeShare{"large share", 0.5, "start-up share",
                                "above it messages are small: RS202 is the question"};

/// Gradients that leave behind backward do so by RS201's measure.
constexpr double kLate = GradientPlan::kLateStart;

/// Start-up of a collective, ns: by the configured link, else by the fit, else the usual one; 0 without a peak.
double startUpNs(const job::Analysis& analysis, const facts::Communicator& communicator, const facts::CommTask& task) {
    const auto hopsNs = [&](const costs::LinkModel& link) {
        return costs::latencyHops(link, task.op, communicator.size, {task.algorithm, task.protocol}).middle() *
               link.alphaNs;
    };
    const std::optional<costs::LinkModel> link = costs::linkModel(analysis.peaks, communicator, task.op);
    if (link && link->alphaNs > 0) return hopsNs(*link);
    const costs::CostFit* fit = analysis.cost.line(communicator.id, task.op);
    if (fit != nullptr && fit->source == "fit") return fit->alphaNs;
    // With the peak as prior the line's latency is all that the peak does not explain, also of a slow link.
    const auto usual = costs::linkWithLatency(analysis.peaks, communicator, task.op);
    return usual ? std::min(hopsNs(*usual), fit != nullptr ? fit->alphaNs : hopsNs(*usual)) : 0;
}

/// 0 up to one share of the whole, 1 from another one on: a diagnosis that comes by degrees.
double rising(double part, double whole, double fromShare, double toShare) {
    return whole > 0 ? std::clamp((part / whole - fromShare) / (toShare - fromShare), 0.0, 1.0) : 1;
}

/// Transfer of the step that no legal overlap can hide: all of it beyond the compute that it may lie under, and its
/// ends. The first all-gather lies in front of all compute and the last message behind it, whatever the order: with a
/// network that rests they are what every job has, the busier it is the more they are a part of its volume like any
/// other. Activations have nothing to hide behind, and every tensor-parallel job has them exposed: they are too much
/// for the link the more they take, in full where they take as long as all compute.
double unhideable(const CriticalStep& step, facts::CommRole role, double claimedNs) {
    const double exposed = std::max(0.0, step.exposedTransferNs() - claimedNs);
    if (role == facts::CommRole::activations)
        return exposed * rising(exposed, static_cast<double>(step.attribution->computeNs), kActivationShare, 1);
    const GradientPlan plan = planOf(step);
    const facts::CommTask& last = step.tasks[step.own.back()];
    // What leaves late may begin with backward.
    double room = plan.lateness() > kLate ? plan.backwardNs() : plan.backwardEnd - plan.firstStart;
    double ends = static_cast<double>(last.exposedTransferNs);
    if (role == facts::CommRole::shardedParameters) {
        // Behind the last reduce-scatter only the optimizer runs, and it needs the gradients.
        room = plan.backwardEnd;
        ends += static_cast<double>(step.tasks[step.own.front()].exposedTransferNs);
    }
    const double wanted = step.transferNs() - claimedNs;
    // One of a few messages is no end: smaller ones would hide (RS201, RS202).
    const bool several = static_cast<int>(step.own.size()) >= kFewestMessages;
    const double busy = several ? rising(wanted, room, kBusyShare, kRestlessShare) : 0;
    const auto tail = static_cast<double>(last.transferNs());
    const double between = std::min(std::max(0.0, wanted - room), std::max(0.0, exposed - tail));
    return std::min(between + ends * busy, std::max(0.0, exposed - tail * (1 - busy)));
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
            if (k == 0 || message.startNs - reductions.tasks[own[k - 1]].endNs > static_cast<int64_t>(1e3 * kAtOnceUs))
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
    if (computed > kBegunShare * transfer) waiting += exposed;
    return std::max(0.0, waiting - claimedNs);
}

/// Shares of a ring's rate that a message has by NCCL's best choice and by the recorded one. What a worse choice lacks
/// is no volume (RS205). One that the formulas do not know counts as the best: nobody can say that it is worse.
struct ChoiceShares {
    double best = 1, own = 1;
};

ChoiceShares choiceShares(const job::Analysis& analysis, const facts::Communicator& communicator,
                          const facts::CommTask& task) {
    const std::optional<costs::LinkModel> link = costs::linkModel(analysis.peaks, communicator, task.op);
    if (!link) return {};
    const auto bytes = static_cast<double>(task.bytes);
    const costs::AlgorithmChoice choice{task.algorithm, task.protocol};
    const double best = costs::bestShare(*link, task.op, bytes).middle();
    if (!costs::isModelled(task.op, choice)) return {best, best};
    return {best, costs::bandwidthShare(*link, task.op, choice, bytes).middle()};
}

/// How slow large messages of a communicator are, as RS204 sees it. `slowness`, of messages of such a size, counts
/// where no message had the link for itself.
job::LinkProbe paceOf(const job::Analysis& analysis, const facts::Communicator& communicator, double slowness,
                      double bytes) {
    const auto probe = std::ranges::find_if(analysis.linkProbes, [&](const job::LinkProbe& one) {
        return !one.pair && !one.exchange && one.communicatorId == communicator.id;
    });
    if (probe != analysis.linkProbes.end()) return *probe;
    job::LinkProbe all{.slowness = slowness, .share = costs::ceilingShare(analysis.peaks, communicator).share};
    if (const auto link = costs::linkModel(analysis.peaks, communicator, store::Op::unknown))
        all.lateness = costs::healthyLateness(*link, bytes);
    all.compareWithOthers();
    return all;
}

struct LinkUse {
    double busBytes = 0;
    double ceilingNs = 0;  // bytes at the ceiling
    double bestNs = 0;     // bytes at what the best algorithm and protocol have of messages of their sizes
    double ownNs = 0;      // at what the recorded ones have
    double startupNs = 0;
    double actualNs = 0;
    bool sized = true;
};

LinkUse linkUse(const job::Analysis& analysis, const CriticalStep& step, const facts::Communicator& communicator) {
    LinkUse use;
    const double ringRate = analysis.peaks.busCeiling(communicator).value_or(1);
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        if (task.bytes < 0) {
            use.sized = false;
            continue;
        }
        const double startup = startUpNs(analysis, communicator, task);
        const double busBytes = static_cast<double>(task.bytes) * facts::busFactor(task.op, communicator.size);
        const ChoiceShares shares = choiceShares(analysis, communicator, task);
        use.busBytes += busBytes;
        use.ceilingNs += busBytes / costs::bestCeiling(analysis.peaks, communicator, task.op).value_or(1);
        use.bestNs += busBytes / (ringRate * shares.best);
        use.ownNs += busBytes / (ringRate * shares.own);
        use.startupNs += std::min(startup, static_cast<double>(task.transferNs()));
        use.actualNs += static_cast<double>(task.transferNs());
    }
    return use;
}

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
        std::vector<double> inLine, costs, shares, startups, bandwidths, tops, paces, choices;
        std::vector<double> bytes, messages;  // of a step, and of a message
        const std::optional<double> ceiling = analysis.peaks.busCeiling(communicator);
        bool sized = true;
        for (const CriticalStep& step : steps) {
            costs.push_back(unhideable(step, role, explained));
            const auto whole = std::find_if(all.begin(), all.end(), [&](const CriticalStep& other) {
                return other.tasks.front().step == step.tasks.front().step;
            });
            inLine.push_back(role == facts::CommRole::gradients ? inLineNs(*whole, step, explained) : 0);
            const LinkUse use = linkUse(analysis, step, communicator);
            sized = sized && use.sized;
            if (use.actualNs <= 0) continue;
            shares.push_back((use.ceilingNs + use.startupNs) / use.actualNs);
            startups.push_back(use.startupNs / use.actualNs);
            bandwidths.push_back(use.busBytes / use.actualNs);
            if (use.ceilingNs > 0) tops.push_back(use.busBytes / use.ceilingNs);
            paces.push_back(use.actualNs / (use.ownNs + use.startupNs));
            choices.push_back((use.bestNs + use.startupNs) / (use.ownNs + use.startupNs));
            bytes.push_back(planOf(step).bytes);
            messages.push_back(bytes.back() / static_cast<double>(step.own.size()));
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
        const job::LinkProbe pace = paceOf(analysis, communicator, facts::median(paces), facts::median(messages));
        const costs::ReachedShare healthy = costs::ceilingShare(analysis.peaks, communicator);
        const bool judged = ceiling && sized && !reached && pace.atCeiling();
        if (!judged)
            finding.whyInconclusive =
                !sized ? "the sizes of the messages are unknown, so that their bandwidth cannot be compared with the "
                         "link's"
                : reached
                    ? fmt::format(
                          "no link peak is known, only that {} of this job reached {:.1f} GB/s: if these links can do "
                          "more, they are under-used (RS204), else the volume is too much for them; tell the peaks: {}",
                          communicator.nodes > 1 ? "communication between nodes" + together
                                                 : "communication inside nodes",
                          *ceiling, costs::kTellLinks)
                : !ceiling
                    ? std::string("no link peak is known: ") + costs::kTellLinks
                    : fmt::format(
                          "large messages take {:.1f} times as long as at the peak: at its ceiling a link takes "
                          "up to {:.1f} times{}, from {:.1f} times on it is slow (RS204), and in between it may "
                          "be either. Measure these links with nccl-tests: if they reach no more there, the "
                          "volume is too much for them",
                          pace.slowness, pace.ceilingTo(),
                          healthy.what.empty() ? std::string() : fmt::format(" ({})", healthy.what), pace.slowFrom());
        setCost(analysis, costs, finding);
        if (!tooMuch && finding.severity < PriceThresholds::kNoteShare) continue;
        if (!judged && finding.verdict == job::Verdict::note) continue;
        // Slower than the link can be, by one of its members, by a choice, or bound by start-up: other diagnoses.
        if (ceiling && sized &&
            (pace.slow() || claims.transferExplanations(id).count(kSlowLink.id) != 0 ||
             facts::median(choices) < kChoiceShare || facts::median(startups) > kLargeShare))
            continue;
        const double share = facts::median(shares);
        const double leastShare = healthy.share.low / healthy.share.high;  // of the ceiling, which is at the high end
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        finding.cause =
            ceiling && !reached
                ? fmt::format("{} per step over {} {}; the link runs at {}{}", text::bytesText(facts::median(bytes)),
                              facts::communicatorName(analysis.facts, analysis.layout, id),
                              tooMuch ? "exceed what compute can hide" : "stand in line where compute ends or begins",
                              share < 1 ? text::percentText(share) + " of its ceiling" : std::string("its ceiling"),
                              !pace.atCeiling() ? ""
                              : share >= 1      ? ", so only fewer bytes help"
                              : share >= leastShare
                                  ? ", as much as NCCL reaches of such rates, so only fewer bytes help"
                                  : fmt::format(", about what a job's step leaves of the {} that NCCL reaches of such "
                                                "rates, so only fewer bytes help",
                                                text::percentText(healthy.share.low)))
                : fmt::format("{} of communication per step cannot be hidden behind compute",
                              text::durationText(facts::median(costs)));
        if (ceiling) {
            finding.evidence.facts.push_back(fmt::format(
                "bus bandwidth {:.1f} GB/s of {}{:.1f} GB/s{} ({}); with start-up this ceiling explains {} of the "
                "transfer time",
                facts::median(bandwidths), reached ? "at least " : "", tops.empty() ? *ceiling : facts::median(tops),
                together, analysis.peaks.source, share < 1 ? text::percentText(share) : std::string("all")));
            if (!reached && !tops.empty() &&
                facts::median(bandwidths) > job::ReachedPeakThresholds::kRefuted * facts::median(tops))
                finding.evidence.facts.push_back(
                    fmt::format("rings and trees carry no more: the algorithm{} sends less over these links, or the "
                                "peak is too low",
                                steps.front().tasks[steps.front().own.front()].algorithm == store::Algorithm::unknown
                                    ? ", which is not recorded,"
                                    : ""));
            if (!reached && share < 1 && !healthy.what.empty())
                finding.evidence.facts.push_back(fmt::format("healthy links reach {} of their peak, or more ({})",
                                                             text::percentText(healthy.share.low), healthy.what));
            finding.evidence.numbers = {{"busbw_bytes_per_ns", facts::median(bandwidths)},
                                        {"ceiling_bytes_per_ns", tops.empty() ? *ceiling : facts::median(tops)},
                                        {"ceiling_share", share}};
        }
        finding.evidence.facts.push_back(tooMuch ? fmt::format("{} of transfer per step, {} of it at the ends of "
                                                               "communication or more than the compute it may overlap",
                                                               text::durationText(steps.front().transferNs()),
                                                               text::durationText(facts::median(costs)))
                                                 : fmt::format("{} of transfer per step; {} of it, and of what comes "
                                                               "back, only stand in line behind other messages",
                                                               text::durationText(steps.front().transferNs()),
                                                               text::durationText(facts::median(costs))));
        std::vector<facts::CommTask> longest;
        const CriticalStep& shown = shownStep(analysis, steps, finding);
        for (size_t i : shown.own) longest.push_back(shown.tasks[i]);
        std::stable_sort(longest.begin(), longest.end(), [](const facts::CommTask& a, const facts::CommTask& b) {
            return a.transferNs() > b.transferNs();
        });
        for (size_t k = 0; k < std::min<size_t>(3, longest.size()); ++k)
            if (longest[k].collectiveId != 0)
                finding.evidence.rows.push_back({"collective", longest[k].collectiveId, shown.rank->rank,
                                                 judged ? "a large message at the ceiling" : "a large message"});
        if (role == facts::CommRole::activations) {
            finding.fix = {
                "fewer tensor-parallel ranks, and pipeline or data parallelism in their place: a layer's compute per "
                "byte grows as the degree shrinks",
                "keep the group on links as fast as NVLink; these messages wait for compute and compute for them"};
        } else if (role != facts::CommRole::shardedParameters) {
            finding.fix.push_back(
                "gradient accumulation with no_sync(): reduce every k-th micro-step only, of smaller micro-steps or of "
                "a "
                "batch k times as large, whose steps are longer: compare the time per sample");
            if (std::ranges::any_of(steps.front().own, [&](size_t i) {
                    const store::DataType type = steps.front().tasks[i].dataType;
                    return type == store::DataType::f32 || type == store::DataType::f64;
                }))
                finding.fix.push_back(
                    "bf16 gradients or a compression hook (DDP: register_comm_hook(None, bf16_compress_hook))");
            else if (std::ranges::any_of(steps.front().own, [&](size_t i) {
                         return steps.front().tasks[i].dataType == store::DataType::unknown;
                     }))
                finding.fix.push_back(
                    "bf16 gradients, where they are not yet, which was not recorded (DDP: register_comm_hook(None, "
                    "bf16_compress_hook))");
            else
                finding.evidence.facts.push_back(fmt::format(
                    "gradients are {} already", toText(steps.front().tasks[steps.front().own.front()].dataType)));
            finding.fix.push_back("a larger batch per rank: more compute for the same bytes");
        } else {
            // On one node, or with one rank on each, no smaller group of neighbours could shard: HSDP is then what
            // runs, or DDP.
            const std::string& host = analysis.facts.findRank(steps.front().rank->rank)->host;
            if (communicator.nodes > 1 && communicator.size > communicator.nodes)
                finding.fix.push_back(
                    "HSDP (ShardingStrategy.HYBRID_SHARD): gather inside the node, reduce between nodes");
            else if (communicator.nodes <= 1 && host.empty())
                finding.fix.push_back(
                    "where the ranks are on several nodes, with several on each (not recorded here): HSDP "
                    "(ShardingStrategy.HYBRID_SHARD)");
            finding.fix.push_back(
                "ZeRO-2 (reshard_after_forward=False) where memory allows: one all-gather less per layer");
            finding.fix.push_back("gradient accumulation or a larger batch per rank: more compute for the same bytes");
        }
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

constexpr double kHalf =
    0.5;  // 16 bit instead of 32, every second reduction: each fix for too many bytes leaves half of them or less

/// So many bytes less that the rest hides, and half of them at least: its transfers without the part that the finding
/// says is too much.
Changes fewerBytes(const job::Analysis& analysis, const job::Finding& f) {
    const replay::TaskGraph& graph = analysis.replay.graph;
    if (!f.communicator || analysis.replay.steps.empty()) return {};
    const auto group = analysis.facts.communicators.find(*f.communicator);
    if (group == analysis.facts.communicators.end()) return {};
    const facts::CommRole role = analysis.layout.role(*f.communicator);
    std::map<int64_t, double> transferNs;  // by communicator like it, of a member, all steps
    for (const replay::Exchange& exchange : graph.exchanges) {
        const auto other = analysis.facts.communicators.find(exchange.communicatorId);
        if (exchange.join == replay::kNoTask || other == analysis.facts.communicators.end() ||
            other->second.size != group->second.size || analysis.layout.role(exchange.communicatorId) != role)
            continue;
        if (std::find(analysis.replay.steps.begin(), analysis.replay.steps.end(), exchange.step) ==
            analysis.replay.steps.end())
            continue;
        transferNs[exchange.communicatorId] +=
            static_cast<double>(graph.durationNs[graph.membersOf(exchange).front().transfer]);
    }
    // A large job has hundreds of groups: in whole percent they are fifty changes at most.
    std::map<std::string, std::vector<int>> communicators;  // by what is left of their bytes
    const double tooMuch = f.costNs * static_cast<double>(analysis.replay.steps.size());
    for (const auto& [id, ns] : transferNs)
        if (ns > 0)
            communicators[fmt::format("{:g}", std::round(100 * std::clamp(1 - tooMuch / ns, 0.01, kHalf)) / 100)]
                .push_back(static_cast<int>(id));
    Changes changes;
    for (const auto& [factor, ids] : communicators)
        changes.push_back({"bytes", {{"factor", factor}, {"communicator", job::listText(ids)}}});
    return changes;
}

}  // namespace

const Diagnosis kSaturation{
    .id = "RS203",
    .title = "bandwidth saturation",
    .definition =
        "Large messages run at the ceiling of their link, and there are more of them than the compute they may overlap "
        "can hide: nothing is wrong but the volume. The cost is the transfer time beyond that compute and, where the "
        "network hardly rests, its ends, which nothing can hide: the first gather and the last reduction; or what "
        "messages of gradients stand in line "
        "for when backward is over, and parameters that come back when forward begins: whichever is more. What overlap "
        "or merging could save is theirs (RS201, RS202). Activations of tensor-parallel ranks hide behind nothing: "
        "theirs "
        "is too "
        "much where it takes as long as all compute, and by degrees from half of it on. The ceiling of a communicator "
        "inside a node is a rank's port; over nodes it is min(port, k x NIC), k = fewest members on a node. Where "
        "a tree between two nodes crosses the network half as often, it is more. NCCL reaches a part of the peak, "
        "which depends on the kind of link: at their ceiling are messages that take up to 1.3 times as long as at the "
        "least share that healthy links reach, or as their fastest sibling. What takes longer, and is not slow by "
        "RS204's measure, is inconclusive.",
    .thresholds = {kAtCeiling,
                   kChoiceShare,
                   kBusyShare,
                   kRestlessShare,
                   kFewestMessages,
                   kActivationShare,
                   {"late start", GradientPlan::kLateStart, "of backward",
                    "gradients that first leave behind it do not stand in line: RS201 measures them so"},
                   kAtOnceUs,
                   kBegunShare,
                   kLargeShare},
    .falsePositives =
        "A configured peak that is too low makes any link look saturated. Without a peak the verdict is "
        "'inconclusive'.",
    .fix =
        "Fewer bytes: bf16 gradients, compression hook, gradient accumulation, HSDP, ZeRO-2 instead of 3, a larger "
        "batch per rank.",
    .hint =
        "Framed are large messages that already run as fast as the link can: red shrinks only when fewer bytes are "
        "sent.",
    .detect = detectSaturation,
    .missing = missingForSaturation,
    .repair = fewerBytes,
};

}  // namespace rs203
}  // namespace rankscope::diagnose
