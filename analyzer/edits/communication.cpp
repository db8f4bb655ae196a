// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/costs/nccl_setting.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/facts/intervals.h"
#include "analyzer/text/lists.h"

namespace rankscope::edits {
namespace {

/// Kernels beside communication progress as they do alone, by what contention the analysis has measured
/// (facts/contention.h).
void liftContention(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    std::map<int, double> lostShare;
    for (const facts::RankSummary& rank : analysis.ranks)
        if (rank.contention.samples > 0 && rank.contention.lostShare > 0)
            lostShare[rank.rank] = rank.contention.lostShare;
    if (lostShare.empty())
        throw EditError("no kernel of this run is slower beside communication than alone",
                        "it takes kernels that run both ways, three times each");
    const Schedule schedule = simulate(graph);
    std::map<int, std::vector<facts::Interval>>
        busy;  // NCCL kernels by rank: they hold their multiprocessors while they wait, too
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::transfer) continue;
        const TaskId arrival = graph.before[task];
        busy[graph.rankOf(task)].push_back(
            {arrival == kNoTask ? schedule.startNs[task] : schedule.startNs[arrival], schedule.endNs[task]});
    }
    std::map<int, facts::CoveredLength> covered;
    for (auto& [rank, intervals] : busy)
        covered.emplace(rank, facts::CoveredLength(facts::unite(std::move(intervals))));
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::kernel) continue;
        const auto lost = lostShare.find(graph.rankOf(task));
        const auto beside = covered.find(graph.rankOf(task));
        if (lost == lostShare.end() || beside == covered.end()) continue;
        graph.durationNs[task] -=
            scaledNs(beside->second.within(schedule.startNs[task], schedule.endNs[task]), lost->second);
    }
    effect.assume("communication takes as long as before with fewer multiprocessors of its own");
}

constexpr double kUneven = 0.1;      // of a micro-step's kernels: an embedding, a loss or a norm more in one of them
constexpr double kAdditions = 0.25;  // of a micro-step's kernels, at most: one for each gradient beside one of forward
                                     // and two of backward; the first micro-step has none (a fifth was seen, of DDP)

/// Each `parts`-th of the reductions has the sizes of the one before, and is called behind as many kernels: forward and
/// backward, and what adds gradients to those of the micro-steps before. Layers of one backward pass that are reduced
/// one by one have no forward pass between them.
bool comeAgain(const TaskGraph& graph, const LaunchIndex& index, const std::vector<uint32_t>& sequence, size_t parts) {
    const size_t period = sequence.size() / parts;
    for (size_t i = period; i < sequence.size(); ++i)
        if (graph.exchanges[sequence[i]].bytes != graph.exchanges[sequence[i - period]].bytes) return false;
    const ExchangeMember& member = graph.membersOf(graph.exchanges[sequence.front()]).front();
    const ComputeLane& compute = index.compute(member.rank);
    const int step = graph.exchanges[sequence.front()].step;
    auto before = static_cast<double>(
        std::ranges::partition_point(compute.kernels, [&](TaskId kernel) { return graph.info[kernel].step < step; }) -
        compute.kernels.begin());
    std::vector<double> kernels;  // by micro-step
    for (size_t i = period - 1; i < sequence.size(); i += period) {
        const TaskId call = index.launchOf(graph.membersOf(graph.exchanges[sequence[i]]).front().arrival);
        if (call == kNoTask)
            throw EditError("which kernels a reduction follows is unknown without the calls that launch them",
                            "record the CUDA calls");
        const auto now = static_cast<double>(index.launchedBefore(compute, call));
        kernels.push_back(now - before);
        before = now;
    }
    if (kernels.size() < 2) return kernels.size() == 1 && kernels.front() > 0;
    const auto [fewest, most] = std::minmax_element(kernels.begin() + 1, kernels.end());
    const double uneven = std::max(1.0, kUneven * *most);
    return *most > 0 && *most - *fewest <= uneven && kernels.front() <= *fewest + uneven &&
           kernels.front() >= (1 - kAdditions) * *most - uneven;
}

/// When transfers that go were under way, by communicator and rank.
using GoneTimes = std::map<std::pair<int64_t, int>, std::vector<facts::Interval>>;

/// What is left of a communicator's collectives has the links for itself where it shared them with what is gone: its
/// recorded times hold what that cost. All members wait for the one that gains least.
void giveLinksBack(GoneTimes times, const Schedule& schedule, TaskGraph& graph, EditEffect& effect) {
    std::map<std::pair<int64_t, int>, facts::CoveredLength> busy;
    for (auto& [where, intervals] : times)
        busy.emplace(where, facts::CoveredLength(facts::unite(std::move(intervals))));
    bool shared = false;
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.members == 0) continue;
        int64_t gainedNs = std::numeric_limits<int64_t>::max();
        for (const ExchangeMember& member : graph.membersOf(exchange)) {
            const auto beside = busy.find({exchange.communicatorId, member.rank});
            const int64_t besideNs = beside == busy.end() ? 0
                                                          : beside->second.within(schedule.startNs[member.transfer],
                                                                                  schedule.endNs[member.transfer]);
            gainedNs = std::min(gainedNs, scaledNs(besideNs, kHalfTheLink));
        }
        if (gainedNs == 0) continue;
        shared = true;
        if (effect.outlook == Outlook::dear) continue;
        for (const ExchangeMember& member : graph.membersOf(exchange))
            graph.durationNs[member.transfer] = std::max<int64_t>(0, graph.durationNs[member.transfer] - gainedNs);
    }
    if (!shared) return;
    effect.open = true;
    effect.assume(
        "collectives of one communicator that ran at a time shared its links equally; at worst they did not slow each "
        "other");
}

/// Gradients are reduced once a step, by the last of `microSteps` equal sequences of reductions.
void reduceOnce(int microSteps, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    std::map<std::tuple<int64_t, int, store::Op>, std::vector<uint32_t>>
        sequences;  // by communicator, step and operation
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
        const Exchange& exchange = graph.exchanges[i];
        const bool reduces =
            exchange.members > 0 && (exchange.op == store::Op::allReduce || exchange.op == store::Op::reduceScatter);
        if (reduces && exchange.step >= 0 &&
            growsWithReplicas(analysis.layout.role(exchange.communicatorId, exchange.op)))
            sequences[{exchange.communicatorId, exchange.step, exchange.op}].push_back(i);
    }
    const auto parts = static_cast<size_t>(microSteps);
    const LaunchIndex index(graph);
    const Schedule schedule = simulate(graph);
    GoneTimes goneTimes;
    std::vector<bool> gone(graph.size());
    bool found = false;
    for (auto& [key, sequence] : sequences) {
        std::ranges::sort(sequence,
                          [&](uint32_t a, uint32_t b) { return graph.exchanges[a].join < graph.exchanges[b].join; });
        const size_t kept = sequence.size() / parts;
        if (kept == 0 || sequence.size() % parts != 0 || !comeAgain(graph, index, sequence, parts)) continue;
        found = true;
        for (size_t i = 0; i + kept < sequence.size(); ++i) {
            for (const ExchangeMember& member : graph.membersOf(graph.exchanges[sequence[i]])) {
                gone[member.transfer] = true;
                goneTimes[{graph.exchanges[sequence[i]].communicatorId, member.rank}].push_back(
                    {schedule.startNs[member.transfer], schedule.endNs[member.transfer]});
                graph.durationNs[member.transfer] = 0;
            }
            removeExchange(graph.exchanges.own(sequence[i]));
        }
    }
    if (!found)
        throw EditError(fmt::format("no reductions of gradients come in {} equal sequences a step, each behind a "
                                    "forward and a backward pass of its own",
                                    microSteps),
                        "rankscope analyze tells how often they repeat");
    giveLinksBack(std::move(goneTimes), schedule, graph, effect);
    removeEdges(graph, [&](TaskId to, const Edge& edge) { return gone[to] && edge.kind == WaitKind::peer; });
    effect.assume("gradients are summed on the device between micro-steps at no cost");
}

}  // namespace

std::unique_ptr<Edit> parseNoContention(EditArguments&) {
    return editBy(liftContention);
}

std::unique_ptr<Edit> parseReduceOnce(EditArguments& arguments) {
    return editBy(reduceOnce, arguments.requiredWhole("micro-steps", 2));
}

namespace {

struct AlgorithmTo {
    store::Algorithm algorithm = store::Algorithm::unknown;  // unknown: the present one stays
    store::Protocol protocol = store::Protocol::unknown;
    bool automatic = false;             // what NCCL takes where no variable tells it: the cheapest that it has
    store::Op op = store::Op::unknown;  // unknown: every one
    std::vector<int> communicators;     // none: all
};

/// A collective as the cost model asks for it; nothing for messages and what has no size.
std::optional<costs::Message> messageOf(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const facts::Communicator* communicator = analysis.facts.findCommunicator(exchange.communicatorId);
    if (exchange.message() || exchange.bytes <= 0 || communicator == nullptr) return std::nullopt;
    return costs::Message{costs::shapeOf(*communicator),
                          communicator->smallestNode,
                          exchange.op,
                          static_cast<double>(exchange.bytes),
                          {exchange.algorithm, exchange.protocol},
                          static_cast<double>(graph.longestNs(exchange))};
}

/// Exchange number `at` of the graph as it was recorded, where an algorithm edit before this one changed it: choices
/// are compared with what was measured, not with what was modelled.
const Exchange* recordedBefore(const Analysis& analysis, const TaskGraph& graph, size_t at) {
    const auto& all = analysis.replay.graph.exchanges;
    if (at >= all.size()) return nullptr;
    const Exchange &recorded = all[at], &exchange = graph.exchanges[at];
    const bool same = recorded.id == exchange.id && recorded.communicatorId == exchange.communicatorId &&
                      recorded.op == exchange.op && recorded.bytes == exchange.bytes;
    return same && (recorded.algorithm != exchange.algorithm || recorded.protocol != exchange.protocol) ? &recorded
                                                                                                        : nullptr;
}

/// Collectives run with another algorithm or protocol of NCCL. Times are the recorded ones x what measurements, else
/// NCCL's cost model, say of the two choices (costs/collective_cost.h).
void changeAlgorithm(const AlgorithmTo& to, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    for (const int id : to.communicators) checkCommunicator(analysis, id);
    const costs::CollectiveCost& cost = analysis.cost;
    const costs::SeenChoices& seen = cost.evidence().seen();
    const std::optional<costs::NcclVersion> version = costs::ncclVersionOf(analysis.facts);
    const costs::NcclSetting forced =
        costs::NcclSetting::parse(analysis.facts.text("env.NCCL_ALGO"), analysis.facts.text("env.NCCL_PROTO"));
    // Where variables force something NCCL preferred its present choice to all that they left it, and takes it again
    // unless what they ruled out is better.
    const auto free = [&](std::vector<costs::AlgorithmChoice> choices, const costs::Message& message, store::Op op) {
        if (!forced.rules.empty())
            std::erase_if(choices, [&](costs::AlgorithmChoice choice) {
                return !(choice == message.present) && forced.ruleOf(op).allows(choice);
            });
        return choices;
    };
    // What never ran where nothing was forced NCCL has passed over.
    const auto unseen = [&](const costs::Message& message, store::Op op) {
        return forced.rules.empty() ? std::vector<costs::AlgorithmChoice>{}
                                    : free(costs::unseenChoices(op, message.shape, seen), message, op);
    };
    const std::map<int64_t, double> shared = costs::sharedTransfers(analysis.facts);
    bool found = false;
    NamedCommunicators named(to.communicators);
    for (size_t i = 0; i < graph.exchanges.size(); ++i) {
        const Exchange& exchange = graph.exchanges[i];
        if (!to.communicators.empty() && !isNamed(to.communicators, exchange.communicatorId)) continue;
        named.carries(exchange.communicatorId);
        if (to.op != store::Op::unknown && exchange.op != to.op) continue;
        const Exchange* recorded = recordedBefore(analysis, graph, i);
        std::optional<costs::Message> message = recorded != nullptr
                                                    ? messageOf(analysis.replay.graph, analysis, *recorded)
                                                    : messageOf(graph, analysis, exchange);
        if (!message || message->presentNs <= 0) continue;
        message->sharedPart = text::valueAt(shared, exchange.id);
        const costs::AlgorithmChoice before{exchange.algorithm, exchange.protocol};
        costs::AlgorithmChoice choice = before;
        if (to.algorithm != store::Algorithm::unknown) choice.algorithm = to.algorithm;
        if (to.protocol != store::Protocol::unknown) choice.protocol = to.protocol;
        std::optional<costs::CostEstimate> estimate;
        if (to.automatic) {
            const auto chosen = cost.chosenByNccl(
                *message,
                free(costs::supportedChoices(exchange.op, message->shape, version, seen), *message, exchange.op),
                unseen(*message, exchange.op));
            if (!chosen) continue;
            choice = chosen->choice;
            estimate = chosen->cost;
        } else if (costs::isSupported(exchange.op, message->shape, choice, version, seen)) {
            estimate = cost.of(*message, choice);
        }
        const std::optional<costs::CostEstimate> undone = cost.of(*message, before);
        if (!estimate || !undone) continue;
        found = true;
        if (estimate->basis == costs::Basis::model)
            effect.assume("times of algorithms that did not run are those of NCCL's own cost model");
        for (const ExchangeMember& member : graph.membersOf(exchange))
            graph.durationNs[member.transfer] =
                scaledNs(graph.durationNs[member.transfer], estimate->scale.expected / undone->scale.expected);
        Exchange& changed = graph.exchanges.own(i);
        changed.algorithm = choice.algorithm;
        changed.protocol = choice.protocol;
    }
    named.tell(found, analysis, effect);
    if (!found)
        throw EditError("no collective of this run can run that way, or nothing tells how long it would take",
                        "ring and tree (all-reduce only) with ll, ll128 (where it was seen) and simple; it takes a "
                        "known link (--links \"intra:gbps=…;inter:gbps=…\") or measured sizes");
}

}  // namespace

std::unique_ptr<Edit> parseAlgorithm(EditArguments& arguments) {
    AlgorithmTo to;
    const std::string algorithm = arguments.text("algo").value_or("");
    const std::string protocol = arguments.text("proto").value_or("");
    const std::string op = arguments.text("op").value_or("");
    to.communicators = arguments.communicators();
    if (algorithm.empty() && protocol.empty()) arguments.refuse("algo or proto is missing");
    to.automatic = algorithm == "auto";
    if (!to.automatic && !algorithm.empty() &&
        (to.algorithm = costs::algorithmOfName(algorithm)) == store::Algorithm::unknown)
        arguments.refuse("algo is '" + algorithm +
                         "', but may be auto, ring, tree, nvls, nvlstree, collnetdirect, collnetchain, pat");
    if (!protocol.empty() && (to.protocol = costs::protocolOfName(protocol)) == store::Protocol::unknown)
        arguments.refuse("proto is '" + protocol + "', but may be ll, ll128, simple");
    if (to.automatic && !protocol.empty()) arguments.refuse("auto chooses the protocol, too");
    if (!op.empty() && (to.op = costs::opOfName(op)) == store::Op::unknown)
        arguments.refuse("op is '" + op + "', but may be allreduce, allgather, reducescatter, broadcast, reduce");
    return editBy(changeAlgorithm, to);
}

}  // namespace rankscope::edits
