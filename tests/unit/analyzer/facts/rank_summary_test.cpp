// SPDX-License-Identifier: Apache-2.0

#include "analyzer/facts/rank_summary.h"

#include <gtest/gtest.h>

#include <random>

namespace rankscope::facts {
namespace {

DeviceActivity randomActivity(std::mt19937& random) {
    std::uniform_int_distribution<int64_t> start(0, 900), length(1, 60);
    const auto some = [&](int count) {
        std::vector<Interval> result;
        for (int i = 0; i < count; ++i) {
            const int64_t s = start(random);
            result.push_back({s, s + length(random)});
        }
        return unite(std::move(result));
    };
    return {some(12), some(6), some(6), some(8)};
}

TEST(Attribution, AddsUpToTheStepOnAnyInput) {
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
        const DeviceActivity activity = randomActivity(random);
        const int64_t start = 50 + round % 100, end = 800 + round % 150;
        IntervalSet idle;
        const Attribution a = attribute(activity, start, end, &idle);
        ASSERT_EQ(a.computeNs + a.exposedCommNs() + a.memoryNs + a.idleNs, end - start);
        ASSERT_GE(
            std::min({a.computeNs, a.exposedWaitNs, a.exposedTransferNs, a.overlappedCommNs, a.memoryNs, a.idleNs}), 0);
        ASSERT_EQ(length(idle), a.idleNs);
        ASSERT_LE(a.overlappedCommNs, a.computeNs);
    }
}

TEST(Attribution, FollowsTheVocabulary) {
    //        0    10   20   30   40   50   60   70   80
    // C      ##########
    // N           wwwwwwwwww>>>>>>>>>>            (waits 10 to 30, transfers 30 to 50)
    // M                               #########   (45 to 65)
    const DeviceActivity activity{{{0, 20}}, {{30, 50}}, {{10, 30}}, {{45, 65}}};
    const Attribution a = attribute(activity, 0, 80);
    EXPECT_EQ(a.computeNs, 20);
    EXPECT_EQ(a.overlappedCommNs, 10);
    EXPECT_EQ(a.exposedWaitNs, 10);
    EXPECT_EQ(a.exposedTransferNs, 20);
    EXPECT_EQ(a.memoryNs, 15);
    EXPECT_EQ(a.idleNs, 15);
}

TEST(Attribution, ARankThatWaitsInOneKernelAndTransfersInAnotherCommunicates) {
    const Attribution a = attribute({{}, {{0, 40}}, {{20, 60}}, {}}, 0, 100);
    EXPECT_EQ(a.exposedTransferNs, 40);
    EXPECT_EQ(a.exposedWaitNs, 20);
}

TEST(RankSummary, GivesEachCollectiveItsExposedPart) {
    RankFacts facts;
    facts.rank = 0;
    facts.steps = {{5, 0, 1000, false}};
    RankEvents events;
    events.compute = {{0, 100, {}, 1, -1}, {300, 400, {}, 1, -1}};
    CommTask task;
    task.startNs = 50;
    task.endNs = 250;
    task.waitNs = 100;
    events.communication = {task};
    const RankSummary summary = summarize(std::move(events), facts);
    const CommTask& result = summary.communication.at(0);
    EXPECT_EQ(result.step, 5);
    EXPECT_EQ(result.exposedWaitNs, 50);       // 100 to 150
    EXPECT_EQ(result.exposedTransferNs, 100);  // 150 to 250
    EXPECT_EQ(result.computeBeforeNs, 50);
    EXPECT_EQ(result.idleNetworkBeforeNs, 50);
    EXPECT_EQ(result.idleNetworkAfterNs, 100);
}

}  // namespace
}  // namespace rankscope::facts
