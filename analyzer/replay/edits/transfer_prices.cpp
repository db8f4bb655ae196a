// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/edits/transfer_prices.h"

#include <algorithm>
#include <cmath>

#include "analyzer/recommend/algorithm_support.h"
#include "analyzer/recommend/nccl_setting.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

struct Samples {
    std::vector<double> ns;
    AlgorithmChoice choice;
};

/// Of times from the median of their size: 1.4826 x median absolute deviation, as of normal noise.
double scatterOf(const std::map<int64_t, Samples>& bySize) {
    std::vector<double> deviations;
    for (const auto& [bytes, samples] : bySize) {
        if (samples.ns.size() < 2) continue;
        const double typical = median(samples.ns);
        for (double ns : samples.ns)
            if (typical > 0) deviations.push_back(std::abs(ns / typical - 1));
    }
    return 1.4826 * median(std::move(deviations));
}

SeenChoices seenIn(const TaskGraph& graph) {
    SeenChoices seen;
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.message() || exchange.members == 0) continue;
        seen.algorithms.insert(exchange.algorithm);
        seen.protocols.insert(exchange.protocol);
    }
    return seen;
}

}  // namespace

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

double TransferPrices::longestNs(const TaskGraph& graph, const Exchange& exchange) {
    double longest = 0;
    for (const ExchangeMember& member : graph.membersOf(exchange))
        longest = std::max(longest, static_cast<double>(graph.durationNs[member.transfer]));
    return longest;
}

TransferPrices::TransferPrices(const TaskGraph& graph, const Analysis& analysis) {
    std::map<std::pair<int64_t, store::Op>, std::map<int64_t, Samples>> found;
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.join == kNoTask || exchange.bytes <= 0 || exchange.members == 0) continue;
        Samples& samples = found[{exchange.communicatorId, exchange.op}][exchange.bytes];
        samples.ns.push_back(longestNs(graph, exchange));
        samples.choice = {exchange.algorithm, exchange.protocol};
    }
    const SeenChoices seen = seenIn(graph);
    const std::optional<NcclVersion> version = ncclVersionOf(analysis.facts);
    const NcclSetting forced =
        NcclSetting::parse(analysis.facts.text("env.NCCL_ALGO"), analysis.facts.text("env.NCCL_PROTO"));
    for (const auto& [who, bySize] : found) {
        const auto& [communicatorId, op] = who;
        const auto communicator = analysis.facts.communicators.find(communicatorId);
        CollectivePrice::Sizes sizes;
        for (const auto& [bytes, samples] : bySize)
            if (const double time = median(samples.ns); time > 0)
                sizes[static_cast<double>(bytes)] = {time, medianError(samples.ns), samples.choice};
        if (sizes.empty()) continue;
        m_scatter[who] = scatterOf(bySize);
        const int ranks = communicator == analysis.facts.communicators.end() ? 0 : communicator->second.size;
        std::optional<LinkModel> link;
        ChoiceRules rules;
        if (ranks > 1) {
            link = linkModel(analysis.peaks, communicator->second, op);
            const auto mayNot = [&, op = op](AlgorithmChoice choice) {
                return !isModelled(op, choice) || !forced.ruleOf(op).allows(choice);
            };
            rules = {supportedChoices(op, shapeOf(communicator->second), version, seen),
                     unseenChoices(op, shapeOf(communicator->second), seen)};
            std::erase_if(rules.allowed, mayNot);
            std::erase_if(rules.mayHave, mayNot);
        }
        m_prices.emplace(who, CollectivePrice(op, ranks, std::move(sizes), link, std::move(rules)));
    }
}

double TransferPrices::scatter(int64_t communicator, store::Op op) const {
    const auto known = m_scatter.find({communicator, op});
    return known == m_scatter.end() ? 0 : known->second;
}

std::optional<Estimate> TransferPrices::ns(int64_t communicator, store::Op op, double bytes) const {
    const auto known = m_prices.find({communicator, op});
    return known == m_prices.end() ? std::nullopt : known->second.ns(bytes);
}

}  // namespace rankscope::analyzer
