// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/algorithm.h"

#include <algorithm>
#include <map>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/costs/nccl_setting.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_view.h"

namespace rankscope::edits {
namespace {

/// A collective as the cost model asks for it; nothing for messages and what has no size.
std::optional<costs::Message> messageOf(const replay::TaskGraph& graph, const job::Analysis& analysis,
                                        const replay::Exchange& exchange) {
    const auto communicator = analysis.facts.communicators.find(exchange.communicatorId);
    if (exchange.message() || exchange.bytes <= 0 || communicator == analysis.facts.communicators.end())
        return std::nullopt;
    costs::Message message;
    message.shape = costs::shapeOf(communicator->second);
    message.smallestNode = communicator->second.smallestNode;
    message.communicatorId = exchange.communicatorId;
    message.op = exchange.op;
    message.bytes = static_cast<double>(exchange.bytes);
    message.present = {exchange.algorithm, exchange.protocol};
    for (const replay::ExchangeMember& member : graph.membersOf(exchange))
        if (member.transfer != replay::kNoTask)
            message.presentNs = std::max(message.presentNs, static_cast<double>(graph.durationNs[member.transfer]));
    return message;
}

/// The exchange as it was recorded, where an algorithm edit before this one changed it: choices are compared with what
/// was measured, not with what was modelled.
const replay::Exchange* recordedBefore(const job::Analysis& analysis, const replay::TaskGraph& graph,
                                       const replay::Exchange& exchange) {
    const std::vector<replay::Exchange>& all = analysis.replay.graph.exchanges;
    const auto at = static_cast<size_t>(&exchange - graph.exchanges.data());
    if (at >= all.size()) return nullptr;
    const replay::Exchange& recorded = all[at];
    const bool same = recorded.id == exchange.id && recorded.communicatorId == exchange.communicatorId &&
                      recorded.op == exchange.op && recorded.bytes == exchange.bytes;
    return same && (recorded.algorithm != exchange.algorithm || recorded.protocol != exchange.protocol) ? &recorded
                                                                                                        : nullptr;
}

}  // namespace

void Algorithm::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    if (m_to.communicator) checkCommunicator(analysis, *m_to.communicator);
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
    for (replay::Exchange& exchange : graph.exchanges) {
        if (m_to.communicator && exchange.communicatorId != *m_to.communicator) continue;
        if (m_to.op != store::Op::unknown && exchange.op != m_to.op) continue;
        const replay::Exchange* recorded = recordedBefore(analysis, graph, exchange);
        std::optional<costs::Message> message = recorded != nullptr
                                                    ? messageOf(analysis.replay.graph, analysis, *recorded)
                                                    : messageOf(graph, analysis, exchange);
        if (!message || message->presentNs <= 0) continue;
        if (const auto part = shared.find(exchange.id); part != shared.end()) message->sharedPart = part->second;
        const costs::AlgorithmChoice before{exchange.algorithm, exchange.protocol};
        costs::AlgorithmChoice choice = before;
        if (m_to.algorithm != store::Algorithm::unknown) choice.algorithm = m_to.algorithm;
        if (m_to.protocol != store::Protocol::unknown) choice.protocol = m_to.protocol;
        std::optional<costs::CostEstimate> estimate;
        if (m_to.automatic) {
            const auto chosen = cost.cheapest(
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
        for (const replay::ExchangeMember& member : graph.membersOf(exchange))
            if (member.transfer != replay::kNoTask)
                graph.durationNs[member.transfer] =
                    scaledNs(graph.durationNs[member.transfer], estimate->scale.expected / undone->scale.expected);
        exchange.algorithm = choice.algorithm;
        exchange.protocol = choice.protocol;
    }
    if (!found)
        throw EditError("no collective of this run can run that way, or nothing tells how long it would take",
                        "ring and tree (all-reduce only) with ll, ll128 (where it was seen) and simple; it takes a "
                        "known link (--links \"intra:gbps=…;inter:gbps=…\") or measured sizes");
}

std::unique_ptr<Edit> parseAlgorithm(EditArguments& arguments) {
    Algorithm::To to;
    const std::string algorithm = arguments.text("algo").value_or("");
    const std::string protocol = arguments.text("proto").value_or("");
    const std::string op = arguments.text("op").value_or("");
    if (const std::optional<int> id = arguments.whole("communicator")) to.communicator = *id;
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
    return std::make_unique<Algorithm>(to);
}

}  // namespace rankscope::edits
