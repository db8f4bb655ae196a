// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/beside_compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "analyzer/edits/graph_changes.h"
#include "analyzer/facts/intervals.h"
#include "analyzer/job/collective_speed.h"

namespace rankscope::edits {
namespace {

using Thresholds = job::CollectiveSpeedThresholds;

// Where a job has the same collective both ways, its own times tell. Under the first share it counts as alone, from the
// second one on as beside compute: between them there is too little of either.
constexpr double kAlone = 0.1, kBeside = 0.6;
constexpr size_t kFewest = 3;  // of each kind: one is an accident
constexpr double kErrors = 2;  // standard errors that an interval holds
// No more than that: what takes longer yet has another reason. And under half of a time is lost (lengthen()).
constexpr double kMostTimes = 1.95;
constexpr double kMoved = 0.01;      // of a transfer: what a replay misses of a step, too
constexpr int64_t kSettledNs = 100;  // a tenth of what any clock of a device tells

Busy computeOf(const TaskGraph& graph, const Schedule& schedule) {
    std::map<int, std::vector<facts::Interval>> times;
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.info[task].kind == TaskKind::kernel)
            times[graph.rankOf(task)].push_back({schedule.startNs[task], schedule.endNs[task]});
    Busy busy;
    for (auto& [rank, intervals] : times) busy.emplace(rank, facts::CoveredLength(facts::unite(std::move(intervals))));
    return busy;
}

int64_t besideNs(const TaskGraph& graph, const Exchange& exchange, const Schedule& schedule, const Busy& compute) {
    int64_t most = 0;
    for (const ExchangeMember& member : graph.membersOf(exchange))
        if (const auto busy = compute.find(member.rank); busy != compute.end())
            most =
                std::max(most, busy->second.within(schedule.startNs[member.transfer], schedule.endNs[member.transfer]));
    return most;
}

/// Times of equal collectives.
struct Equals {
    std::vector<double> alone, beside;
    std::vector<double> shares;  // of the latter, beside compute
};

/// How many times as long the latter take, were they beside compute from end to end; nothing where that is not shown.
std::optional<facts::Estimate> shownBy(const Equals& equals) {
    if (equals.alone.size() < kFewest || equals.beside.size() < kFewest) return std::nullopt;
    const double share = facts::median(equals.shares), alone = facts::median(equals.alone),
                 beside = facts::median(equals.beside);
    const double error =
        kErrors * (facts::medianError(equals.alone) / alone + facts::medianError(equals.beside) / beside);
    const auto timesOf = [share](double ratio) {
        const double loss = (1 - 1 / std::max(1.0, ratio)) / share;
        return std::min(kMostTimes, 1 / std::max(1 / kMostTimes, 1 - loss));
    };
    const double ratio = beside / alone;
    return facts::Estimate{timesOf(ratio * (1 - error)), timesOf(ratio), timesOf(ratio * (1 + error))};
}

}  // namespace

BesideCompute::BesideCompute(const TaskGraph& graph, const Analysis& analysis) {
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (job::slowedByCompute(analysis, communicator)) m_slowings[id];
    if (m_slowings.empty()) return;
    const Schedule schedule = simulate(graph);
    const Busy compute = computeOf(graph, schedule);
    std::map<std::tuple<int64_t, store::Op, int64_t>, Equals> equals;
    for (const Exchange& exchange : graph.exchanges) {
        const bool counts = exchange.join != kNoTask && m_slowings.contains(exchange.communicatorId);
        const int64_t longest = counts ? graph.longestNs(exchange) : 0;
        const int64_t beside = counts ? besideNs(graph, exchange, schedule, compute) : 0;
        m_exchanges.push_back({exchange.communicatorId, longest, beside});
        if (longest <= 0 || exchange.bytes <= 0) continue;
        const double share = std::min(1.0, static_cast<double>(beside) / static_cast<double>(longest));
        Equals& same = equals[{exchange.communicatorId, exchange.op, exchange.bytes}];
        if (share <= kAlone) same.alone.push_back(static_cast<double>(longest));
        if (share < kBeside) continue;
        same.beside.push_back(static_cast<double>(longest));
        same.shares.push_back(share);
    }
    constexpr double kLeast = Thresholds::kLeastPcieBesideCompute, kMost = Thresholds::kPcieBesideCompute;
    for (auto& [id, slowing] : m_slowings) slowing.times = {1, (kLeast + kMost) / 2, kMost};
    std::map<int64_t, double> mostNs;  // by communicator: what the collective takes that tells
    for (const auto& [what, same] : equals) {
        const auto shown = shownBy(same);
        double& most = mostNs[std::get<0>(what)];
        if (!shown || facts::median(same.alone) <= most) continue;
        most = facts::median(same.alone);
        m_slowings[std::get<0>(what)] = {*shown, true};
    }
}

double BesideCompute::lossOf(int64_t communicator, Outlook outlook) const {
    const auto slowing = m_slowings.find(communicator);
    if (slowing == m_slowings.end()) return 0;
    const facts::Estimate& times = slowing->second.times;
    return 1 - 1 / (outlook == Outlook::dear ? times.high : outlook == Outlook::cheap ? times.low : times.expected);
}

double BesideCompute::lostNs(size_t exchange, Outlook outlook) const {
    if (m_exchanges.empty()) return 0;
    const Recorded& recorded = m_exchanges[exchange];
    return static_cast<double>(recorded.besideNs) * lossOf(recorded.communicator, outlook);
}

bool BesideCompute::moved(size_t exchange, int64_t besideNs) const {
    if (exchange >= m_exchanges.size()) return true;
    const Recorded& was = m_exchanges[exchange];
    const double difference = std::abs(static_cast<double>(besideNs - was.besideNs));
    return difference > std::max(static_cast<double>(kSettledNs), kMoved * static_cast<double>(was.longestNs));
}

void BesideCompute::tell(const std::set<int64_t>& communicators, EditEffect& effect) const {
    for (int64_t id : communicators) {
        const auto& [times, shown] = m_slowings.at(id);
        if (shown && times.high <= 1) continue;
        effect.open = true;
        effect.assume(shown ? fmt::format("beside compute transfers over PCIe take {:.2f} times as long as alone, as "
                                          "equal ones of this job do",
                                          times.expected)
                            : fmt::format("beside compute transfers over PCIe take {:g} to {:g} times as long as "
                                          "alone, as was measured elsewhere: nothing in this trace shows it, and at "
                                          "best they are as fast",
                                          Thresholds::kLeastPcieBesideCompute, Thresholds::kPcieBesideCompute));
    }
}

void BesideCompute::reprice(TaskGraph& changed, EditEffect& effect) const {
    if (m_slowings.empty()) return;
    std::vector<int64_t> aloneNs = changed.durationNs;
    std::vector<std::pair<size_t, double>> slowed;  // exchanges, with what they lose
    for (size_t i = 0; i < changed.exchanges.size(); ++i) {
        const Exchange& exchange = changed.exchanges[i];
        if (exchange.join == kNoTask || !m_slowings.contains(exchange.communicatorId)) continue;
        const double loss = lossOf(exchange.communicatorId, effect.outlook);
        slowed.emplace_back(i, loss);
        if (i >= m_exchanges.size()) continue;
        for (const ExchangeMember& member : changed.membersOf(exchange))
            aloneNs[member.transfer] =
                std::max<int64_t>(0, aloneNs[member.transfer] - scaledNs(m_exchanges[i].besideNs, loss));
    }
    for (int pass = 0; pass < kSettlingPasses; ++pass) {
        const Schedule schedule = simulate(changed);
        const Busy compute = computeOf(changed, schedule);
        int64_t changedNs = 0;
        std::set<int64_t> communicators;
        for (const auto& [i, loss] : slowed) {
            const Exchange& exchange = changed.exchanges[i];
            if (moved(i, besideNs(changed, exchange, schedule, compute))) communicators.insert(exchange.communicatorId);
            changedNs = std::max(changedNs, lengthen(changed, exchange, aloneNs, schedule, compute, loss));
        }
        if (changedNs > kSettledNs && pass + 1 < kSettlingPasses) continue;
        return tell(communicators, effect);
    }
}

}  // namespace rankscope::edits
