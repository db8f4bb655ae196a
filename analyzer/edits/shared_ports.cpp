// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "analyzer/edits/graph_changes.h"
#include "analyzer/facts/intervals.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::edits {
namespace {

constexpr double kEqualShare = 0.5;  // of a port that two flows leave by
constexpr int kLengthRounds = 16;    // each at least halves what is missing of a transfer's length

using IsOf = bool (*)(const Analysis&, const Exchange&);

Busy busyWith(IsOf isOf, const TaskGraph& graph, const Analysis& analysis, const Schedule& schedule) {
    std::map<int, std::vector<facts::Interval>> times;
    for (const Exchange& exchange : graph.exchanges) {
        if (!isOf(analysis, exchange)) continue;
        for (const ExchangeMember& member : graph.membersOf(exchange))
            times[member.rank].push_back({schedule.startNs[member.transfer], schedule.endNs[member.transfer]});
    }
    Busy busy;
    for (auto& [rank, intervals] : times) busy.emplace(rank, facts::CoveredLength(facts::unite(std::move(intervals))));
    return busy;
}

/// Median bus bandwidth, bytes per ns; 0 where no size is known.
double rateOf(IsOf isOf, const TaskGraph& graph, const Analysis& analysis) {
    std::vector<double> rates;
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.members == 0 || exchange.bytes <= 0 || !isOf(analysis, exchange)) continue;
        const TaskId transfer = graph.membersOf(exchange).front().transfer;
        if (graph.durationNs[transfer] <= 0) continue;
        const facts::Communicator* group = analysis.facts.findCommunicator(exchange.communicatorId);
        const int ranks = group != nullptr ? group->size : static_cast<int>(exchange.members);
        rates.push_back(static_cast<double>(exchange.bytes) * facts::busFactor(exchange.op, ranks) /
                        static_cast<double>(graph.durationNs[transfer]));
    }
    return rates.empty() ? 0 : facts::median(std::move(rates));
}

/// Shares of their rates that both lose beside each other.
struct Losses {
    double inside = 0, between = 0;
};

Losses lossesOf(const TaskGraph& graph, const Analysis& analysis) {
    const double inside = rateOf(isOfShards, graph, analysis), between = rateOf(isSumOfReplicas, graph, analysis);
    if (inside <= 0 || between <= 0) return {1 - kEqualShare, 0};
    const double share =
        kEqualShare * std::max(inside, between);  // the port lets through what the faster one reaches alone
    return {std::max(0.0, 1 - share / inside), std::max(0.0, 1 - share / between)};
}

/// How long a transfer of `aloneNs` lasts that begins at `startNs`.
int64_t lengthNs(const facts::CoveredLength& others, double loss, int64_t startNs, int64_t aloneNs) {
    int64_t ns = aloneNs;
    for (int i = 0; i < kLengthRounds; ++i)
        ns = aloneNs + std::llround(loss * static_cast<double>(others.within(startNs, startNs + ns)));
    return ns;
}

}  // namespace

int64_t lengthen(TaskGraph& graph, const Exchange& exchange, const std::vector<int64_t>& aloneNs,
                 const Schedule& schedule, const Busy& others, double loss) {
    int64_t longerNs = 0;
    for (const ExchangeMember& member : graph.membersOf(exchange)) {
        const auto beside = others.find(member.rank);
        if (beside == others.end()) continue;
        longerNs = std::max(
            longerNs, lengthNs(beside->second, loss, schedule.startNs[member.transfer], aloneNs[member.transfer]) -
                          aloneNs[member.transfer]);
    }
    int64_t changedNs = 0;
    for (const ExchangeMember& member : graph.membersOf(exchange)) {
        const int64_t ns = aloneNs[member.transfer] + longerNs;
        changedNs = std::max(changedNs, std::abs(std::exchange(graph.durationNs[member.transfer], ns) - ns));
    }
    return changedNs;
}

bool isSumOfReplicas(const Analysis& analysis, const Exchange& exchange) {
    return analysis.layout.role(exchange.communicatorId, exchange.op) == facts::CommRole::replicas &&
           exchange.op == store::Op::allReduce;
}

bool isOfShards(const Analysis& analysis, const Exchange& exchange) {
    const bool moves = exchange.op == store::Op::allGather || exchange.op == store::Op::reduceScatter;
    return moves && analysis.layout.role(exchange.communicatorId, exchange.op) == facts::CommRole::shardedParameters;
}

bool besideReplicas(const TaskGraph& graph, const Analysis& analysis) {
    const Schedule schedule = simulate(graph);
    const Busy sums = busyWith(isSumOfReplicas, graph, analysis, schedule);
    for (const Exchange& exchange : graph.exchanges) {
        if (!isOfShards(analysis, exchange)) continue;
        for (const ExchangeMember& member : graph.membersOf(exchange)) {
            const auto beside = sums.find(member.rank);
            if (beside != sums.end() &&
                beside->second.within(schedule.startNs[member.transfer], schedule.endNs[member.transfer]) > 0)
                return true;
        }
    }
    return false;
}

void sharePorts(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    effect.open = true;
    effect.assume(
        "collectives inside and between nodes share the GPU's port equally while both run; at best they do not slow "
        "each other");
    if (effect.outlook == Outlook::cheap) return;
    const std::vector<int64_t> aloneNs = graph.durationNs;
    const Losses losses = lossesOf(graph, analysis);
    for (int pass = 0; pass < kSettlingPasses; ++pass) {
        const Schedule schedule = simulate(graph);
        const Busy inside = busyWith(isOfShards, graph, analysis, schedule),
                   between = busyWith(isSumOfReplicas, graph, analysis, schedule);
        int64_t changedNs = 0;
        for (const Exchange& exchange : graph.exchanges) {
            if (isOfShards(analysis, exchange))
                changedNs = std::max(changedNs, lengthen(graph, exchange, aloneNs, schedule, between, losses.inside));
            if (isSumOfReplicas(analysis, exchange))
                changedNs = std::max(changedNs, lengthen(graph, exchange, aloneNs, schedule, inside, losses.between));
        }
        if (changedNs == 0) return;
    }
}

}  // namespace rankscope::edits
