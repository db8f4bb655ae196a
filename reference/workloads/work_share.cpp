// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/work_share.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "reference/workloads/layout.h"
#include "reference/workloads/seeded_hash.h"

namespace rankscope::reference {

namespace {

constexpr double kLeastShare = 0.1;  // no replica is left without work

double shareAmongGiven(const Scenario& scenario, const UnevenWork& uneven, int replica) {
    std::set<int> heavy;
    for (const int rank : uneven.ranks) heavy.insert(Layout(scenario.parallel, rank).dataRank());
    if (heavy.count(replica)) return uneven.factor;
    const double replicas = scenario.parallel.dp;
    const double count = static_cast<double>(heavy.size());
    return std::max(kLeastShare, (replicas - count * uneven.factor) / (replicas - count));
}

/// Evenly spaced from 2 - factor to factor, in an order that the seed shuffles.
double shareBySeed(const Scenario& scenario, const UnevenWork& uneven, int replica) {
    const int replicas = scenario.parallel.dp;
    std::vector<int> order(static_cast<size_t>(replicas));
    std::iota(order.begin(), order.end(), 0);
    const auto drawn = [&](int which) {
        return seededHash(static_cast<uint64_t>(scenario.seed), static_cast<uint64_t>(which));
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return drawn(a) < drawn(b); });
    const auto place = static_cast<double>(std::find(order.begin(), order.end(), replica) - order.begin());
    return std::max(kLeastShare, 1 + (uneven.factor - 1) * (2 * place / (replicas - 1) - 1));
}

}  // namespace

double workShare(const Scenario& scenario, int rank) {
    const Layout layout(scenario.parallel, rank);
    double share = 1;
    if (const auto& uneven = scenario.faults.unevenWork; uneven && scenario.model.experts == 0)
        share *= uneven->ranks.empty() ? shareBySeed(scenario, *uneven, layout.dataRank())
                                       : shareAmongGiven(scenario, *uneven, layout.dataRank());
    for (const StageImbalance& imbalance : scenario.faults.stageImbalances)
        if (imbalance.stage == layout.stage()) share *= imbalance.factor;
    return share;
}

ExpertSkew expertSkew(const Scenario& scenario) {
    const auto& uneven = scenario.faults.unevenWork;
    if (!uneven || scenario.model.experts == 0) return {};
    const int expertsPerRank = scenario.model.experts / scenario.parallel.ep;
    // h tokens for one of E experts, L of them on its rank, R ranks, T tokens, and (T - h) / (E - 1) for each other:
    // solve h + (L - 1) (T - h) / (E - 1) = factor T / R for h E / T.
    const double experts = scenario.model.experts;
    const double factor = experts * (uneven->factor * (experts - 1) / scenario.parallel.ep - (expertsPerRank - 1)) /
                          (experts - expertsPerRank);
    if (!uneven->ranks.empty())
        return {factor, Layout(scenario.parallel, uneven->ranks.front()).expert().rank * expertsPerRank};
    const uint64_t drawn =
        seededHash(static_cast<uint64_t>(scenario.seed), static_cast<uint64_t>(scenario.model.experts));
    return {factor, static_cast<int>(drawn % static_cast<uint64_t>(scenario.model.experts))};
}

}  // namespace rankscope::reference
