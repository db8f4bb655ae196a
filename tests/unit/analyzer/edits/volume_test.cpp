// SPDX-License-Identifier: Apache-2.0
// Collectives with fewer bytes, on graphs small enough to be played by hand. Times are in ms.
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hand_made_step.h"

namespace rankscope::edits {
namespace {

using replay::TaskId;
using replay::TaskKind;

/// Two ranks that compute for 1 ms, cast gradients for 1 ms on a stream of their own and reduce them there for 12 ms,
/// in float32, beside a gather of parameters that takes `gatherMs`, in bfloat16.
replay::TaskGraph stepWithGather(double gatherMs) {
    replay::GraphDraft draft;
    std::vector<replay::ExchangeMember> reduces, gathers;
    for (int rank : {0, 1}) {
        test::Rank one(draft, rank);
        const uint32_t aside = draft.addLane({rank, false, 10 + rank});
        const TaskId kernel = one.kernel(0, 2);
        gathers.push_back(one.communicate(gatherMs, kernel));
        const TaskId cast = draft.addTask(one.ofStep(aside, TaskKind::kernel, 5), test::kMs);
        draft.addEdge(cast, one.call(), replay::WaitKind::launch, 0, true);
        const TaskId arrival = draft.addTask(one.ofStep(aside, TaskKind::arrival), 0);
        draft.addEdge(arrival, kernel, replay::WaitKind::event);
        const TaskId transfer = draft.addTask(one.ofStep(aside, TaskKind::transfer), 12 * test::kMs);
        reduces.push_back({rank, arrival, transfer});
        one.kernel(1, 1, transfer);
        one.mark(true);
    }
    test::joinAll(draft, store::Op::reduceScatter, 64 * test::kMebi, reduces);
    test::joinAll(draft, store::Op::allGather, 64 * test::kMebi, gathers);
    replay::TaskGraph graph = *std::move(draft).seal();
    for (size_t i = 0; i < graph.exchanges.size(); ++i)
        graph.exchanges.own(i).dataType =
            graph.exchanges[i].op == store::Op::allGather ? store::DataType::bf16 : store::DataType::f32;
    return graph;
}

double halvedMs(const replay::TaskGraph& graph, Outlook outlook, EditEffect& effect) {
    job::Analysis analysis = test::analysisOf(store::Op::reduceScatter, facts::CommRole::gradients);
    analysis.layout.uses[test::kGroup][store::Op::allGather] = {facts::CommRole::gradients, 1};
    effect = {};
    effect.outlook = outlook;
    replay::TaskGraph changed = graph;
    parseEdit("gradients:dtype=bf16")->apply(changed, analysis, effect);
    return test::stepMs(changed);
}

TEST(Volume, WhatATransferLosesToOthersOnItsLinksStays) {
    const replay::TaskGraph graph = stepWithGather(6);
    EXPECT_NEAR(test::stepMs(graph), 2 + 12 + 1, 1e-6);
    EditEffect effect;
    // 6 ms beside the gather let through what takes 3 alone: 9 ms become 4.5, which lose 3 again.
    EXPECT_NEAR(halvedMs(graph, Outlook::expected, effect), 2 + 4.5 + 3 + 1, 1e-6);
    EXPECT_TRUE(effect.open);
    EXPECT_NEAR(halvedMs(graph, Outlook::cheap, effect), 2 + 6 + 1, 1e-6);
    // Beside 8 ms of the gather 4 were lost: 8 ms become 4, which are lost once more.
    EXPECT_NEAR(halvedMs(stepWithGather(8), Outlook::expected, effect), 2 + 4 + 4 + 1, 1e-6);
}

TEST(Volume, CastsOnTheStreamOfATransferShrinkWithItsBytes) {
    const auto castNs = [](Outlook outlook) {
        EditEffect effect;
        effect.outlook = outlook;
        replay::TaskGraph graph = stepWithGather(1);
        parseEdit("gradients:dtype=bf16")
            ->apply(graph, test::analysisOf(store::Op::reduceScatter, facts::CommRole::gradients), effect);
        for (TaskId task = 0; task < graph.size(); ++task)
            if (graph.info[task].kind == TaskKind::kernel && graph.info[task].detail == 5)
                return graph.durationNs[task];
        return int64_t{-1};
    };
    EXPECT_EQ(castNs(Outlook::expected), test::kMs / 2);
    EXPECT_EQ(castNs(Outlook::dear), test::kMs);
    EXPECT_EQ(castNs(Outlook::cheap), 5'000);  // what a kernel takes that does nothing
}

}  // namespace
}  // namespace rankscope::edits
