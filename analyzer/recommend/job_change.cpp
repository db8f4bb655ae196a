// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/job_change.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"

namespace rankscope::recommend {
namespace {

/// Transfers by what is one to NCCL's choice.
struct Samples {
    const job::Analysis& analysis;
    struct OfKey {
        std::vector<double> times;
        double sharedSum = 0;  // parts beside other communicators' transfers
    };
    std::map<MessageKey, OfKey> byKey;
    int64_t unknown = 0;

    /// Counts what NCCL chooses an algorithm for, in the analysed steps and with a known size and time.
    void add(const MessageKey& key, std::optional<int> step, int64_t ns, double sharedPart) {
        const facts::Communicator* communicator = analysis.facts.findCommunicator(key.communicatorId);
        if (communicator == nullptr || communicator->size < 2 || costs::ncclName(key.op).empty()) return;
        if (!step || !std::ranges::binary_search(analysis.steps, *step) || key.bytes <= 0 || ns <= 0) return;
        if (!key.choice.known()) {
            ++unknown;
            return;
        }
        OfKey& samples = byKey[key];
        samples.times.push_back(static_cast<double>(ns));
        samples.sharedSum += sharedPart;
    }

    MessageList list() const {
        MessageList list{{}, unknown};
        for (const auto& [key, samples] : byKey) {
            const facts::Communicator& communicator = analysis.facts.communicators.at(key.communicatorId);
            const auto number = static_cast<double>(samples.times.size());
            const costs::Message message{costs::shapeOf(communicator),
                                         communicator.smallestNode,
                                         key.op,
                                         static_cast<double>(key.bytes),
                                         key.choice,
                                         facts::median(samples.times),
                                         samples.sharedSum / number};
            list.groups.push_back({key, message,
                                   number / static_cast<double>(std::max<size_t>(1, analysis.steps.size())),
                                   std::accumulate(samples.times.begin(), samples.times.end(), 0.0)});
        }
        return list;
    }
};

}  // namespace

MessageList messagesOf(const job::Analysis& analysis) {
    Samples all{analysis, {}};
    const std::map<int64_t, double> shared = costs::sharedTransfers(analysis.facts);
    for (const store::Collective& one : analysis.facts.collectives)
        all.add({one.communicatorId, one.op, one.bytes.value_or(0), {one.algorithm, one.protocol}}, one.step,
                one.transferNs.value_or(0), text::valueAt(shared, one.id));
    return all.list();
}

MessageList messagesOf(const job::Analysis& analysis, const MessageList& recorded, const replay::TaskGraph& graph) {
    // New messages lie beside others as much as those that they are made of do, taken by communicator and operation.
    std::map<std::pair<int64_t, store::Op>, std::pair<double, double>> shared;  // sum of parts, number
    for (const MessageGroup& group : recorded.groups) {
        auto& [parts, number] = shared[{group.key.communicatorId, group.key.op}];
        parts += group.message.sharedPart * group.count;
        number += group.count;
    }
    Samples all{analysis, {}};
    for (const replay::Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        const auto [parts, number] = text::valueAt(shared, {exchange.communicatorId, exchange.op});
        all.add(keyOf(exchange), exchange.step, graph.longestNs(exchange), parts / std::max(1.0, number));
    }
    return all.list();
}

ScaledTransfers::ScaledTransfers(const job::Analysis& analysis, const replay::TaskGraph& graph,
                                 const edits::EditEffect& effect, const std::vector<double>& stepsNs)
    : m_analysis(analysis), m_graph(graph), m_effect(effect), m_unscaledNs(stepsNs) {
    std::map<MessageKey, uint32_t> numbers;
    for (const replay::Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        const auto [at, isNew] = numbers.try_emplace(keyOf(exchange), static_cast<uint32_t>(m_keys.size()));
        if (isNew) m_keys.push_back(at->first);
        for (const replay::ExchangeMember& member : graph.membersOf(exchange))
            m_transfers.push_back({member.transfer, at->second});
    }
    std::ranges::stable_sort(m_transfers, {}, &Transfer::task);
}

std::vector<int64_t> ScaledTransfers::durations(const std::vector<double>& factors) const {
    std::vector<int64_t> durations = m_graph.durationNs;
    for (size_t i = 0; i < m_transfers.size();) {
        const replay::TaskId task = m_transfers[i].task;
        double scaled = 0, bytes = 0;
        for (; i < m_transfers.size() && m_transfers[i].task == task; ++i) {
            const auto weight = static_cast<double>(std::max<int64_t>(1, m_keys[m_transfers[i].key].bytes));
            scaled += factors[m_transfers[i].key] * weight;
            bytes += weight;
        }
        durations[task] = std::llround(static_cast<double>(durations[task]) * scaled / bytes);
    }
    return durations;
}

const std::vector<double>& ScaledTransfers::stepsNs(const TransferScale& scale) {
    std::vector<double> factors;
    for (const MessageKey& key : m_keys) factors.push_back(scale(key));
    const auto [at, isNew] = m_stepsNs.try_emplace(std::move(factors));
    if (isNew)
        at->second = edits::stepsNs(m_analysis, m_graph, replay::simulate(m_graph, durations(at->first)), m_effect,
                                    m_unscaledNs);
    return at->second;
}

}  // namespace rankscope::recommend
