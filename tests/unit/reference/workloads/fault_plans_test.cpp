// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "reference/workloads/jitter_plan.h"
#include "reference/workloads/launch_spread.h"
#include "reference/workloads/work_share.h"

namespace rankscope::reference {
namespace {

std::vector<int> stepOf(LaunchSpread& spread, int launches) {
    std::vector<int> occasions;
    spread.beginStep();
    for (int launch = 0; launch < launches; ++launch) occasions.push_back(spread.beforeLaunch());
    return occasions;
}

TEST(LaunchSpread, TheFirstStepIsCountedAndTheNextOnesAreCutEvenly) {
    LaunchSpread spread(3);
    for (int launch = 0; launch < 5; ++launch) EXPECT_EQ(spread.beforeLaunch(), 0) << "before the first step";
    EXPECT_EQ(stepOf(spread, 12), std::vector<int>(12, 0));
    const std::vector<int> middles = {0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0};
    EXPECT_EQ(stepOf(spread, 12), middles);
    EXPECT_EQ(stepOf(spread, 12), middles);
}

TEST(LaunchSpread, MoreOccasionsThanLaunchesAllComeUp) {
    LaunchSpread spread(5);
    stepOf(spread, 2);
    EXPECT_EQ(stepOf(spread, 2), (std::vector<int>{3, 2}));
}

Scenario withJitter(double share, int steps, int64_t seed) {
    Scenario scenario;
    scenario.steps = steps;
    scenario.seed = seed;
    scenario.faults.jitter = Jitter{share, 10};
    return scenario;
}

TEST(JitterPlan, HitsTheShareOfStepsOnChangingRanksBehindTheFirstTwo) {
    for (int64_t seed = 0; seed < 50; ++seed) {
        const JitterPlan plan(withJitter(0.25, 20, seed));
        int hits = 0;
        int before = -1;
        for (int step = 0; step < 20; ++step) {
            const int rank = plan.rankIn(step);
            if (rank < 0) continue;
            EXPECT_GE(step, 2);
            EXPECT_LT(rank, 8);
            EXPECT_NE(rank, before);
            before = rank;
            ++hits;
        }
        EXPECT_EQ(hits, 5) << "seed " << seed;
    }
}

TEST(JitterPlan, AnotherSeedIsAnotherPlanAndNoFaultIsNone) {
    const JitterPlan a(withJitter(0.25, 40, 1)), b(withJitter(0.25, 40, 1)), c(withJitter(0.25, 40, 2));
    std::vector<int> stepsOfA, stepsOfB, stepsOfC;
    for (int step = 0; step < 40; ++step) {
        stepsOfA.push_back(a.rankIn(step));
        stepsOfB.push_back(b.rankIn(step));
        stepsOfC.push_back(c.rankIn(step));
    }
    EXPECT_EQ(stepsOfA, stepsOfB);
    EXPECT_NE(stepsOfA, stepsOfC);
    EXPECT_EQ(JitterPlan(Scenario{}).rankIn(3), -1);
}

TEST(WorkShare, UnevenReplicasHaveTheFactorAtMostAndTheMeanOfOne) {
    Scenario scenario;
    scenario.parallel = {.dp = 4, .tp = 2};
    scenario.faults.unevenWork = UnevenWork{1.6, {}};
    double sum = 0, most = 0;
    for (int rank = 0; rank < 8; rank += 2) {
        EXPECT_DOUBLE_EQ(workShare(scenario, rank), workShare(scenario, rank + 1))
            << "tensor-parallel ranks have the same data";
        sum += workShare(scenario, rank);
        most = std::max(most, workShare(scenario, rank));
    }
    EXPECT_DOUBLE_EQ(sum, 4);
    EXPECT_DOUBLE_EQ(most, 1.6);
    scenario.faults.unevenWork->ranks = {3};
    EXPECT_DOUBLE_EQ(workShare(scenario, 2), 1.6);
    EXPECT_DOUBLE_EQ(workShare(scenario, 3), 1.6);
    EXPECT_DOUBLE_EQ(workShare(scenario, 0), 0.8);
}

TEST(WorkShare, WithExpertsOneOfThemIsWantedMoreAndTheDensePartIsBalanced) {
    Scenario scenario;
    scenario.kind = Kind::ep;
    scenario.model.experts = 8;
    scenario.parallel = {.dp = 4, .ep = 4};
    EXPECT_DOUBLE_EQ(expertSkew(scenario).factor, 1);
    scenario.faults.unevenWork = UnevenWork{1.5, {2}};
    for (int rank = 0; rank < 4; ++rank) EXPECT_DOUBLE_EQ(workShare(scenario, rank), 1);
    const std::vector<int64_t> tokens = tokensPerRank(routeTokens(8000, 8, expertSkew(scenario)), 4);
    EXPECT_NEAR(tokens[2], 3000, 1);
    EXPECT_EQ(tokens[0] + tokens[1] + tokens[2] + tokens[3], 8000);
}

TEST(WorkShare, AHeavierStageIsOneStage) {
    Scenario scenario;
    scenario.parallel = {.dp = 2, .pp = 4};
    scenario.faults.stageImbalances = {StageImbalance{2, 1.5}};
    for (int rank = 0; rank < 8; ++rank) EXPECT_DOUBLE_EQ(workShare(scenario, rank), rank / 2 == 2 ? 1.5 : 1);
}

}  // namespace
}  // namespace rankscope::reference
