// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/edits/transfer_prices.h"

#include <algorithm>
#include <cmath>

#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {

double cheapestNs(const LinkModel& link, store::Op op, int ranks, double bytes) {
    double best = 0;
    for (AlgorithmChoice choice : algorithmChoices(op)) {
        const Range time = collectiveNs(link, op, ranks, bytes, choice);
        const double middle = (time.low + time.high) / 2;
        if (best == 0 || middle < best) best = middle;
    }
    if (best > 0) return best;
    const Range time = collectiveNs(link, op, ranks, bytes, {});
    return (time.low + time.high) / 2;
}

TransferPrices::TransferPrices(const TaskGraph& graph, const Analysis& analysis) : m_analysis(analysis) {
    std::map<std::pair<int64_t, store::Op>, std::map<int64_t, std::vector<double>>> samples;
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.join == kNoTask || exchange.bytes <= 0 || exchange.members == 0) continue;
        std::vector<double> members;
        for (const ExchangeMember& member : graph.membersOf(exchange)) members.push_back(static_cast<double>(graph.durationNs[member.transfer]));
        samples[{exchange.communicatorId, exchange.op}][exchange.bytes].push_back(median(std::move(members)));
    }
    for (auto& [who, bySize] : samples)
        for (auto& [bytes, times] : bySize)
            if (const double time = median(std::move(times)); time > 0) m_times[who][static_cast<double>(bytes)] = time;
}

std::optional<double> TransferPrices::shapeNs(int64_t communicator, store::Op op, double bytes) const {
    const auto facts = m_analysis.facts.communicators.find(communicator);
    if (facts == m_analysis.facts.communicators.end()) return std::nullopt;
    const std::optional<LinkModel> link = linkModel(m_analysis.peaks, facts->second, op);
    if (!link || link->alphaNs <= 0 || link->bytesPerNs <= 0) return std::nullopt;
    return cheapestNs(*link, op, facts->second.size, bytes);
}

std::optional<double> TransferPrices::timeNs(int64_t communicator, store::Op op, double bytes) const {
    const auto known = m_times.find({communicator, op});
    if (known == m_times.end() || bytes <= 0) return std::nullopt;
    const std::map<double, double>& times = known->second;
    const auto above = times.lower_bound(bytes);
    if (above != times.end() && above->first == bytes) return above->second;
    const auto nearest = above == times.end() || (above != times.begin() && bytes / std::prev(above)->first < above->first / bytes) ? std::prev(above) : above;
    const bool between = above != times.end() && above != times.begin();
    if (const std::optional<double> shape = shapeNs(communicator, op, bytes)) {
        if (!between) return nearest->second * *shape / *shapeNs(communicator, op, nearest->first);
        const auto below = std::prev(above);
        const double share = std::log(bytes / below->first) / std::log(above->first / below->first);
        const double low = below->second / *shapeNs(communicator, op, below->first);
        const double high = above->second / *shapeNs(communicator, op, above->first);
        return *shape * std::pow(low, 1 - share) * std::pow(high, share);
    }
    if (between) {
        const auto below = std::prev(above);
        return below->second + (above->second - below->second) * (bytes - below->first) / (above->first - below->first);
    }
    const double smallest = times.begin()->first;
    const double largest = times.rbegin()->first;
    if (largest < CostFit::kSmallestRange * smallest) return std::nullopt;
    // The line through the ends: start-up and rate.
    const double slope = std::max(0.0, (times.rbegin()->second - times.begin()->second) / (largest - smallest));
    const double startup = std::max(0.0, times.begin()->second - slope * smallest);
    return std::max(startup + slope * bytes, bytes < smallest ? startup : nearest->second);
}

}  // namespace rankscope::analyzer
