// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/scaled_transfers.h"

#include <algorithm>
#include <cmath>

namespace rankscope::recommend {

ScaledTransfers::ScaledTransfers(const job::Analysis& analysis, const replay::TaskGraph& graph)
    : m_analysis(analysis), m_graph(graph) {
    std::map<MessageKey, uint32_t> numbers;
    for (const replay::Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        const MessageKey key{
            exchange.communicatorId, exchange.op, exchange.bytes, {exchange.algorithm, exchange.protocol}};
        const auto [at, isNew] = numbers.try_emplace(key, static_cast<uint32_t>(m_keys.size()));
        if (isNew) m_keys.push_back(key);
        for (const replay::ExchangeMember& member : graph.membersOf(exchange))
            if (member.transfer != replay::kNoTask) m_transfers.push_back({member.transfer, at->second});
    }
    std::stable_sort(m_transfers.begin(), m_transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.task < b.task; });
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
    if (isNew) at->second = m_analysis.replay.stepsNs(m_graph, replay::simulate(m_graph, durations(at->first)));
    return at->second;
}

}  // namespace rankscope::recommend
