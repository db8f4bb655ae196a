// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/edits/algorithm.h"

#include <algorithm>
#include <map>

#include "analyzer/recommend/nccl_names.h"
#include "analyzer/recommend/nccl_setting.h"
#include "analyzer/recommend/shared_transfers.h"
#include "analyzer/recommend/transfer_cost.h"
#include "analyzer/replay/edits/edit_arguments.h"
#include "analyzer/replay/edits/graph_view.h"

namespace rankscope::analyzer {
namespace {

/// A collective as the cost model asks for it; nothing for messages and what has no size.
std::optional<Message> messageOf(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const auto communicator = analysis.facts.communicators.find(exchange.communicatorId);
    if (exchange.message() || exchange.bytes <= 0 || communicator == analysis.facts.communicators.end())
        return std::nullopt;
    Message message;
    message.shape = shapeOf(communicator->second);
    message.smallestNode = communicator->second.smallestNode;
    message.communicatorId = exchange.communicatorId;
    message.op = exchange.op;
    message.bytes = static_cast<double>(exchange.bytes);
    message.present = {exchange.algorithm, exchange.protocol};
    for (const ExchangeMember& member : graph.membersOf(exchange))
        if (member.transfer != kNoTask)
            message.presentNs = std::max(message.presentNs, static_cast<double>(graph.durationNs[member.transfer]));
    return message;
}

/// The exchange as it was recorded, where an algorithm edit before this one changed it: choices are compared with what
/// was measured, not with what was modelled.
const Exchange* recordedBefore(const Analysis& analysis, const TaskGraph& graph, const Exchange& exchange) {
    const std::vector<Exchange>& all = analysis.replay.graph.exchanges;
    const auto at = static_cast<size_t>(&exchange - graph.exchanges.data());
    if (at >= all.size()) return nullptr;
    const Exchange& recorded = all[at];
    const bool same = recorded.id == exchange.id && recorded.communicatorId == exchange.communicatorId &&
                      recorded.op == exchange.op && recorded.bytes == exchange.bytes;
    return same && (recorded.algorithm != exchange.algorithm || recorded.protocol != exchange.protocol) ? &recorded
                                                                                                        : nullptr;
}

}  // namespace

void Algorithm::apply(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) const {
    if (m_to.communicator) checkCommunicator(analysis, *m_to.communicator);
    const CostEvidence evidence(analysis.facts, {});
    const TransferCost cost(analysis.peaks, analysis.facts, evidence);
    const std::optional<NcclVersion> version = ncclVersionOf(analysis.facts);
    const NcclSetting forced =
        NcclSetting::parse(analysis.facts.text("env.NCCL_ALGO"), analysis.facts.text("env.NCCL_PROTO"));
    // Where variables force something NCCL preferred its present choice to all that they left it, and takes it again
    // unless what they ruled out is better.
    const auto free = [&](std::vector<AlgorithmChoice> choices, const Message& message, store::Op op) {
        if (!forced.rules.empty())
            std::erase_if(choices, [&](AlgorithmChoice choice) {
                return !(choice == message.present) && forced.ruleOf(op).allows(choice);
            });
        return choices;
    };
    // What never ran where nothing was forced NCCL has passed over.
    const auto unseen = [&](const Message& message, store::Op op) {
        return forced.rules.empty() ? std::vector<AlgorithmChoice>{}
                                    : free(unseenChoices(op, message.shape, evidence.seen()), message, op);
    };
    const std::map<int64_t, double> shared = sharedTransfers(analysis.facts);
    bool found = false;
    for (Exchange& exchange : graph.exchanges) {
        if (m_to.communicator && exchange.communicatorId != *m_to.communicator) continue;
        if (m_to.op != store::Op::unknown && exchange.op != m_to.op) continue;
        const Exchange* recorded = recordedBefore(analysis, graph, exchange);
        std::optional<Message> message = recorded != nullptr ? messageOf(analysis.replay.graph, analysis, *recorded)
                                                             : messageOf(graph, analysis, exchange);
        if (!message || message->presentNs <= 0) continue;
        if (const auto part = shared.find(exchange.id); part != shared.end()) message->sharedPart = part->second;
        const AlgorithmChoice before{exchange.algorithm, exchange.protocol};
        AlgorithmChoice choice = before;
        if (m_to.algorithm != store::Algorithm::unknown) choice.algorithm = m_to.algorithm;
        if (m_to.protocol != store::Protocol::unknown) choice.protocol = m_to.protocol;
        std::optional<CostEstimate> estimate;
        if (m_to.automatic) {
            const auto chosen = cost.cheapest(
                *message,
                free(supportedChoices(exchange.op, message->shape, version, evidence.seen()), *message, exchange.op),
                unseen(*message, exchange.op));
            if (!chosen) continue;
            choice = chosen->choice;
            estimate = chosen->cost;
        } else if (isSupported(exchange.op, message->shape, choice, version, evidence.seen())) {
            estimate = cost.of(*message, choice);
        }
        const std::optional<CostEstimate> undone = cost.of(*message, before);
        if (!estimate || !undone) continue;
        found = true;
        if (estimate->basis == Basis::model)
            effect.assume("times of algorithms that did not run are those of NCCL's own cost model");
        for (const ExchangeMember& member : graph.membersOf(exchange))
            if (member.transfer != kNoTask)
                graph.durationNs[member.transfer] =
                    scaledNs(graph.durationNs[member.transfer], estimate->scale / undone->scale);
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
    if (!to.automatic && !algorithm.empty() && (to.algorithm = algorithmOfName(algorithm)) == store::Algorithm::unknown)
        arguments.refuse("algo is '" + algorithm +
                         "', but may be auto, ring, tree, nvls, nvlstree, collnetdirect, collnetchain, pat");
    if (!protocol.empty() && (to.protocol = protocolOfName(protocol)) == store::Protocol::unknown)
        arguments.refuse("proto is '" + protocol + "', but may be ll, ll128, simple");
    if (to.automatic && !protocol.empty()) arguments.refuse("auto chooses the protocol, too");
    if (!op.empty() && (to.op = opOfName(op)) == store::Op::unknown)
        arguments.refuse("op is '" + op + "', but may be allreduce, allgather, reducescatter, broadcast, reduce");
    return std::make_unique<Algorithm>(to);
}

}  // namespace rankscope::analyzer
