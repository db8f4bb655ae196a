// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/transfer_prices.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

struct Samples {
    std::vector<double> ns;
    costs::AlgorithmChoice choice;
};

/// Of times from the median of their size: 1.4826 x median absolute deviation, as of normal noise.
double scatterOf(const std::map<int64_t, Samples>& bySize) {
    std::vector<double> deviations;
    for (const auto& [bytes, samples] : bySize) {
        if (samples.ns.size() < 2) continue;
        const double typical = facts::median(samples.ns);
        for (double ns : samples.ns)
            if (typical > 0) deviations.push_back(std::abs(ns / typical - 1));
    }
    return 1.4826 * facts::median(std::move(deviations));
}

}  // namespace

double TransferPrices::longestNs(const replay::TaskGraph& graph, const replay::Exchange& exchange) {
    double longest = 0;
    for (const replay::ExchangeMember& member : graph.membersOf(exchange))
        longest = std::max(longest, static_cast<double>(graph.durationNs[member.transfer]));
    return longest;
}

TransferPrices::TransferPrices(const replay::TaskGraph& graph, const job::Analysis& analysis) {
    std::map<std::pair<int64_t, store::Op>, std::map<int64_t, Samples>> found;
    for (const replay::Exchange& exchange : graph.exchanges) {
        if (exchange.join == replay::kNoTask || exchange.bytes <= 0 || exchange.members == 0) continue;
        Samples& samples = found[{exchange.communicatorId, exchange.op}][exchange.bytes];
        samples.ns.push_back(longestNs(graph, exchange));
        samples.choice = {exchange.algorithm, exchange.protocol};
    }
    for (const auto& [who, bySize] : found) {
        const auto& [communicatorId, op] = who;
        const auto communicator = analysis.facts.communicators.find(communicatorId);
        costs::CollectivePrice::Sizes sizes;
        for (const auto& [bytes, samples] : bySize)
            if (const double time = facts::median(samples.ns); time > 0)
                sizes[static_cast<double>(bytes)] = {time, facts::medianError(samples.ns), samples.choice};
        if (sizes.empty()) continue;
        m_scatter[who] = scatterOf(bySize);
        m_prices.emplace(
            who, analysis.cost.price(
                     communicator == analysis.facts.communicators.end() ? facts::Communicator() : communicator->second,
                     op, std::move(sizes)));
    }
}

double TransferPrices::scatter(int64_t communicator, store::Op op) const {
    const auto known = m_scatter.find({communicator, op});
    return known == m_scatter.end() ? 0 : known->second;
}

std::optional<facts::Estimate> TransferPrices::ns(int64_t communicator, store::Op op, double bytes) const {
    const auto known = m_prices.find({communicator, op});
    return known == m_prices.end() ? std::nullopt : known->second.ns(bytes);
}

}  // namespace rankscope::edits
