// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/message_list.h"

#include <algorithm>

#include "analyzer/recommend/nccl_names.h"
#include "analyzer/recommend/shared_transfers.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {

MessageList messagesOf(const Analysis& analysis) {
    MessageList list;
    std::map<MessageKey, std::vector<double>> times;
    std::map<MessageKey, double> sharedSums;
    const std::map<int64_t, double> shared = sharedTransfers(analysis.facts);
    for (const store::Collective& collective : analysis.facts.collectives) {
        const auto communicator = analysis.facts.communicators.find(collective.communicatorId);
        if (communicator == analysis.facts.communicators.end() || communicator->second.size < 2 || ncclName(collective.op).empty()) continue;
        if (!collective.step || !std::binary_search(analysis.steps.begin(), analysis.steps.end(), *collective.step)) continue;
        if (collective.bytes.value_or(0) <= 0 || collective.transferNs.value_or(0) <= 0) continue;
        if (collective.algorithm == store::Algorithm::unknown || collective.protocol == store::Protocol::unknown) {
            ++list.unknown;
            continue;
        }
        const MessageKey key{collective.communicatorId, collective.op, *collective.bytes, {collective.algorithm, collective.protocol}};
        times[key].push_back(static_cast<double>(*collective.transferNs));
        if (const auto part = shared.find(collective.id); part != shared.end()) sharedSums[key] += part->second;
    }
    for (const auto& [key, samples] : times) {
        const Communicator& communicator = analysis.facts.communicators.at(key.communicatorId);
        MessageGroup group;
        group.key = key;
        group.message = {shapeOf(communicator), communicator.smallestNode, key.communicatorId, key.op, static_cast<double>(key.bytes), key.choice, median(samples),
                         sharedSums[key] / static_cast<double>(samples.size())};
        group.count = static_cast<int>((samples.size() + analysis.steps.size() - 1) / std::max<size_t>(1, analysis.steps.size()));
        for (double sample : samples) group.totalNs += sample;
        list.groups.push_back(group);
    }
    return list;
}

}  // namespace rankscope::analyzer
