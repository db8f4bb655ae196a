// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/message_list.h"

#include <algorithm>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::recommend {
namespace {

/// Transfers by what is one to NCCL's choice.
struct Samples {
    std::map<MessageKey, std::vector<double>> times;
    std::map<MessageKey, double> sharedSums;  // parts beside other communicators' transfers
    int64_t unknown = 0;
};

MessageList listOf(const job::Analysis& analysis, const Samples& all) {
    MessageList list;
    list.unknown = all.unknown;
    for (const auto& [key, samples] : all.times) {
        const facts::Communicator& communicator = analysis.facts.communicators.at(key.communicatorId);
        const auto shared = all.sharedSums.find(key);
        MessageGroup group;
        group.key = key;
        group.message = {costs::shapeOf(communicator),
                         communicator.smallestNode,
                         key.communicatorId,
                         key.op,
                         static_cast<double>(key.bytes),
                         key.choice,
                         facts::median(samples),
                         shared == all.sharedSums.end() ? 0 : shared->second / static_cast<double>(samples.size())};
        group.count =
            static_cast<double>(samples.size()) / static_cast<double>(std::max<size_t>(1, analysis.steps.size()));
        for (double sample : samples) group.totalNs += sample;
        list.groups.push_back(group);
    }
    return list;
}

}  // namespace

MessageList messagesOf(const job::Analysis& analysis) {
    Samples all;
    const std::map<int64_t, double> shared = costs::sharedTransfers(analysis.facts);
    for (const store::Collective& collective : analysis.facts.collectives) {
        const auto communicator = analysis.facts.communicators.find(collective.communicatorId);
        if (communicator == analysis.facts.communicators.end() || communicator->second.size < 2 ||
            costs::ncclName(collective.op).empty())
            continue;
        if (!collective.step || !std::ranges::binary_search(analysis.steps, *collective.step)) continue;
        if (collective.bytes.value_or(0) <= 0 || collective.transferNs.value_or(0) <= 0) continue;
        if (collective.algorithm == store::Algorithm::unknown || collective.protocol == store::Protocol::unknown) {
            ++all.unknown;
            continue;
        }
        const MessageKey key{
            collective.communicatorId, collective.op, *collective.bytes, {collective.algorithm, collective.protocol}};
        all.times[key].push_back(static_cast<double>(*collective.transferNs));
        if (const auto part = shared.find(collective.id); part != shared.end()) all.sharedSums[key] += part->second;
    }
    return listOf(analysis, all);
}

MessageList messagesOf(const job::Analysis& analysis, const MessageList& recorded, const replay::TaskGraph& graph) {
    // New messages lie beside others as much as those that they are made of do, taken by communicator and operation.
    std::map<std::pair<int64_t, store::Op>, std::pair<double, double>> shared;  // sum of parts, number
    for (const MessageGroup& group : recorded.groups) {
        auto& sums = shared[{group.key.communicatorId, group.key.op}];
        sums.first += group.message.sharedPart * group.count;
        sums.second += group.count;
    }
    Samples all;
    for (const replay::Exchange& exchange : graph.exchanges) {
        const auto communicator = analysis.facts.communicators.find(exchange.communicatorId);
        if (exchange.message() || communicator == analysis.facts.communicators.end() || communicator->second.size < 2 ||
            costs::ncclName(exchange.op).empty())
            continue;
        if (exchange.bytes <= 0 || !std::ranges::binary_search(analysis.steps, exchange.step)) continue;
        int64_t ns = 0;
        for (const replay::ExchangeMember& member : graph.membersOf(exchange))
            if (member.transfer != replay::kNoTask) ns = std::max(ns, graph.durationNs[member.transfer]);
        if (ns <= 0) continue;
        if (exchange.algorithm == store::Algorithm::unknown || exchange.protocol == store::Protocol::unknown) {
            ++all.unknown;
            continue;
        }
        const MessageKey key{
            exchange.communicatorId, exchange.op, exchange.bytes, {exchange.algorithm, exchange.protocol}};
        all.times[key].push_back(static_cast<double>(ns));
        if (const auto sums = shared.find({key.communicatorId, key.op}); sums != shared.end())
            all.sharedSums[key] += sums->second.first / std::max(1.0, sums->second.second);
    }
    return listOf(analysis, all);
}

}  // namespace rankscope::recommend
