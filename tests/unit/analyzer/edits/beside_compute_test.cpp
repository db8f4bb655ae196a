// SPDX-License-Identifier: Apache-2.0
// Transfers over PCIe beside compute and alone, on graphs small enough to be played by hand. Times are in ms.
#include "analyzer/edits/beside_compute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyzer/edits/trial_graph.h"
#include "analyzer/replay/simulate.h"
#include "tests/unit/analyzer/hand_made_graph.h"

namespace rankscope::edits {
namespace {

using replay::TaskId;
using replay::TaskKind;

/// Two ranks compute for 10 ms, sum 64 MiB behind that and compute for another 10 ms, so often in a row.
struct Job {
    double sumMs = 8;
    std::vector<bool> awaited{true};  // by round: its second kernel waits for the sum, which else runs beside it
};

replay::TaskGraph played(const Job& job) {
    replay::GraphDraft draft;
    std::vector<std::vector<replay::ExchangeMember>> sums(job.awaited.size());
    const auto ns = [](double ms) { return static_cast<int64_t>(ms * test::kMs); };
    for (int rank : {0, 1}) {
        const uint32_t compute = draft.addLane({rank, false, 3 * rank + 1}),
                       network = draft.addLane({rank, false, 3 * rank + 2});
        const TaskId begin = draft.addTask(test::on(replay::kNoLane, TaskKind::stepMark), 0);
        draft.addMark({rank, 0, false, begin});
        TaskId last = begin, previous = begin;
        for (size_t round = 0; round < job.awaited.size(); ++round) {
            const TaskId kernel = draft.addTask(test::on(compute, TaskKind::kernel), ns(10));
            draft.addEdge(kernel, previous, replay::WaitKind::event);
            const TaskId arrival = draft.addTask(test::on(network, TaskKind::arrival), 0);
            draft.addEdge(arrival, kernel, replay::WaitKind::event);
            const TaskId transfer = draft.addTask(test::on(network, TaskKind::transfer), ns(job.sumMs));
            sums[round].push_back({rank, arrival, transfer});
            last = draft.addTask(test::on(compute, TaskKind::kernel), ns(10));
            if (job.awaited[round]) draft.addEdge(last, transfer, replay::WaitKind::event);
            previous = transfer;
        }
        const TaskId end = draft.addTask(test::on(replay::kNoLane, TaskKind::stepMark), 0);
        for (TaskId of : {last, previous}) draft.addEdge(end, of, replay::WaitKind::mark);
        draft.addMark({rank, 0, true, end});
    }
    for (const auto& members : sums) test::joinAll(draft, store::Op::allReduce, 64 * test::kMebi, members);
    return *std::move(draft).seal();
}

job::Analysis linkedBy(costs::LinkMedium medium) {
    job::Analysis analysis;
    facts::Communicator& communicator = analysis.facts.communicators[test::kGroup];
    communicator.id = test::kGroup;
    communicator.size = 2;
    communicator.ranks = {0, 1};
    analysis.peaks.intra = costs::LinkClass{.bytesPerNs = 20, .medium = medium};
    return analysis;
}

/// The step after the order has become that of `then`, whose sums take as long as before.
double stepMs(const Job& now, const Job& then, EditEffect& effect, costs::LinkMedium medium = costs::LinkMedium::pcie) {
    replay::TaskGraph graph = played(then);
    BesideCompute(played(now), linkedBy(medium)).reprice(graph, effect);
    return static_cast<double>(replay::stepTimes(graph, replay::simulate(graph)).front().durNs) / test::kMs;
}

double stepMs(const Job& now, const Job& then, Outlook outlook = Outlook::expected) {
    EditEffect effect;
    effect.outlook = outlook;
    return stepMs(now, then, effect);
}

TEST(BesideCompute, ATransferThatNewlyRunsBesideComputeTakesLonger) {
    // 10 ms of compute let through what takes 10 / 1.65 alone; the rest of the 8 ms follows.
    EXPECT_NEAR(stepMs({8, {true}}, {8, {false}}), 10 + 8 + 10 * (1 - 1 / 1.65), 1e-3);
    EXPECT_NEAR(stepMs({8, {true}}, {8, {false}}, Outlook::dear), 10 + 8 + 10 * (1 - 1 / 1.8), 1e-3);
    EXPECT_NEAR(stepMs({8, {true}}, {8, {false}}, Outlook::cheap), 20, 1e-3);
}

TEST(BesideCompute, WhatTheTraceDoesNotShowIsLeftOpenAndSaid) {
    EditEffect effect;
    stepMs({8, {true}}, {8, {false}}, effect);
    EXPECT_TRUE(effect.open);
    ASSERT_EQ(effect.assumed.size(), 1u);
    EXPECT_NE(effect.assumed.front().find("nothing in this trace shows it"), std::string::npos);
}

TEST(BesideCompute, ATransferThatComputeNoLongerSlowsTakesLess) {
    const double besideMs = 8 + 10 * (1 - 1 / 1.65);
    EXPECT_NEAR(stepMs({besideMs, {false}}, {besideMs, {true}}), 10 + 8 + 10, 1e-3);
}

TEST(BesideCompute, WhatStaysWhereItIsKeepsItsTime) {
    EditEffect effect;
    EXPECT_NEAR(stepMs({8, {false, true}}, {8, {false, true}}, effect), 10 + 10 + 10 + 8 + 10, 1e-3);
    EXPECT_FALSE(effect.open);
    EXPECT_TRUE(effect.assumed.empty());
}

TEST(BesideCompute, NVLinkIsNotSlowedByCompute) {
    EditEffect effect;
    EXPECT_NEAR(stepMs({8, {true}}, {8, {false}}, effect, costs::LinkMedium::nvlink), 20, 1e-6);
    EXPECT_FALSE(effect.open);
}

/// Three sums alone and three beside compute, which take that many times as long.
replay::TaskGraph bothWays(double times) {
    replay::TaskGraph graph = played({6, {true, false, true, false, true, false}});
    for (size_t round : {1, 3, 5})
        for (const replay::ExchangeMember& member : graph.membersOf(graph.exchanges[round]))
            graph.durationNs[member.transfer] = std::llround(graph.durationNs[member.transfer] * times);
    return graph;
}

TEST(BesideCompute, EqualCollectivesOfTheJobTellWhatComputeMakesOfThem) {
    EditEffect effect;
    const BesideCompute beside(bothWays(1.2), linkedBy(costs::LinkMedium::pcie));
    replay::TaskGraph graph = played({6, {false, false, false, false, false, false}});
    beside.reprice(graph, effect);
    ASSERT_EQ(effect.assumed.size(), 1u);
    EXPECT_NE(effect.assumed.front().find("1.20 times"), std::string::npos) << effect.assumed.front();
    EXPECT_NEAR(static_cast<double>(graph.longestNs(graph.exchanges.front())) / test::kMs, 6 * 1.2, 1e-3);
}

TEST(BesideCompute, PricesAreOfTransfersAlone) {
    const job::Analysis analysis = linkedBy(costs::LinkMedium::pcie);
    const replay::TaskGraph graph = bothWays(1.2);
    const BesideCompute beside(graph, analysis);
    const auto price = TransferPrices(graph, analysis, beside).ns(test::kGroup, store::Op::allReduce, 64 * test::kMebi);
    ASSERT_TRUE(price);
    EXPECT_NEAR(price->expected / test::kMs, 6, 1e-3);
    EXPECT_NEAR(beside.lostNs(0, Outlook::expected), 0, 1e-6);
    EXPECT_NEAR(beside.lostNs(1, Outlook::expected) / test::kMs, 1.2, 1e-3);
}

TEST(BesideCompute, AJobWhoseTransfersAreAsFastBesideComputeHasNothingLeftOpen) {
    EditEffect effect;
    const BesideCompute beside(bothWays(1), linkedBy(costs::LinkMedium::pcie));
    replay::TaskGraph graph = played({6, {false, false, false, false, false, false}});
    beside.reprice(graph, effect);
    EXPECT_FALSE(effect.open);
    EXPECT_NEAR(static_cast<double>(graph.longestNs(graph.exchanges.front())) / test::kMs, 6, 1e-6);
}

}  // namespace
}  // namespace rankscope::edits
