// SPDX-License-Identifier: Apache-2.0
// Collectives inside a node beside sums over replicas, on a graph small enough to be played by hand. Times are in ms.
#include <gtest/gtest.h>

#include "analyzer/edits/graph_changes.h"
#include "analyzer/replay/simulate.h"
#include "tests/unit/analyzer/hand_made_graph.h"

namespace rankscope::edits {
namespace {

constexpr int64_t kNode = 7, kReplicas = 8;  // communicators

replay::ExchangeMember communicate(replay::GraphDraft& draft, int rank, uint32_t lane, double ms) {
    const replay::TaskId arrival = draft.addTask(test::on(lane, replay::TaskKind::arrival), 0);
    return {rank, arrival,
            draft.addTask(test::on(lane, replay::TaskKind::transfer), static_cast<int64_t>(ms * test::kMs))};
}

/// Two ranks gather 24 MiB in 1.5 ms (bus bandwidth 8 MiB/ms) and sum `sumMebi` MiB in 2 ms; beside each other, or the
/// sum behind the gather.
replay::TaskGraph step(int64_t sumMebi, bool beside) {
    replay::GraphDraft draft;
    std::vector<replay::ExchangeMember> gather, sum;
    for (int rank : {0, 1}) {
        const uint32_t inside = draft.addLane({rank, false, 3 * rank + 1}),
                       between = draft.addLane({rank, false, 3 * rank + 2});
        const replay::TaskId begin = draft.addTask(test::on(replay::kNoLane, replay::TaskKind::stepMark), 0);
        draft.addMark({rank, 0, false, begin});
        gather.push_back(communicate(draft, rank, inside, 1.5));
        sum.push_back(communicate(draft, rank, between, 2));
        if (!beside) draft.addEdge(sum.back().arrival, gather.back().transfer, replay::WaitKind::event);
        const replay::TaskId end = draft.addTask(test::on(replay::kNoLane, replay::TaskKind::stepMark), 0);
        for (replay::TaskId last : {gather.back().transfer, sum.back().transfer})
            draft.addEdge(end, last, replay::WaitKind::mark);
        draft.addMark({rank, 0, true, end});
    }
    test::joinAll(draft, store::Op::allGather, 24 * test::kMebi, gather, kNode);
    test::joinAll(draft, store::Op::allReduce, sumMebi * test::kMebi, sum, kReplicas);
    return *std::move(draft).seal();
}

job::Analysis hybrid() {
    job::Analysis analysis;
    analysis.layout.uses[kNode][store::Op::allGather] = {facts::CommRole::shardedParameters, 1};
    analysis.layout.uses[kReplicas][store::Op::allReduce] = {facts::CommRole::replicas, 1};
    analysis.layout.roles[kNode] = facts::CommRole::shardedParameters;
    analysis.layout.roles[kReplicas] = facts::CommRole::replicas;
    return analysis;
}

double sharedMs(replay::TaskGraph graph, Outlook outlook = Outlook::expected) {
    EditEffect effect;
    effect.outlook = outlook;
    sharePorts(graph, hybrid(), effect);
    EXPECT_TRUE(effect.open);
    return static_cast<double>(replay::stepTimes(graph, replay::simulate(graph)).front().durNs) / test::kMs;
}

TEST(SharedPorts, AGatherAdvancesAtHalfItsRateWhileReplicasAreSummed) {
    // 1 ms of the gather is done when the sum ends at 2 ms. The network holds the sum to 3 MiB/ms, below half the port.
    EXPECT_NEAR(sharedMs(step(6, true)), 2.5, 1e-3);
    EXPECT_NEAR(sharedMs(step(6, true), Outlook::cheap), 2.0, 1e-6);
}

TEST(SharedPorts, ASumThatTakesMoreThanHalfThePortIsSlowedToo) {
    // Alone 7 MiB/ms, beside the gather 4: of its 14 MiB 12 are there when the gather ends at 3 ms.
    EXPECT_NEAR(sharedMs(step(14, true)), 3 + 2.0 / 7, 1e-3);
}

TEST(SharedPorts, WhatFollowsEachOtherKeepsItsTime) {
    EXPECT_NEAR(sharedMs(step(14, false)), 3.5, 1e-6);
    EXPECT_FALSE(besideReplicas(step(14, false), hybrid()));
    EXPECT_TRUE(besideReplicas(step(14, true), hybrid()));
}

}  // namespace
}  // namespace rankscope::edits
