// SPDX-License-Identifier: Apache-2.0
// What detectors read from one rank's step: when gradients are needed, micro-steps, transfers beside a stalled host.
#include <gtest/gtest.h>

#include "analyzer/diagnose/micro_steps.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::diagnose {
namespace {

facts::CommTask task(store::Op op, int64_t startNs, int64_t durNs, int64_t computeNs, int64_t exposedNs = 0) {
    facts::CommTask task;
    task.op = op;
    task.bytes = 1000;
    task.communicatorId = 1;
    task.startNs = startNs;
    task.endNs = startNs + durNs;
    task.readyNs = startNs;
    task.computeAtReadyNs = task.computeBeforeNs = computeNs;
    task.computeAtEndNs = computeNs + durNs - exposedNs;
    task.exposedTransferNs = exposedNs;
    return task;
}

/// Backward passes of `buckets` buckets, 20 of compute each, behind `pauseNs` of forward; the first forward is shorter
/// by `missingNs`.
CriticalStep backwardPasses(int passes, int buckets, int64_t pauseNs, int64_t missingNs) {
    CriticalStep step;
    int64_t computeNs = -missingNs;
    for (int pass = 0; pass < passes; ++pass) {
        computeNs += pauseNs;
        for (int bucket = 0; bucket < buckets; ++bucket) {
            computeNs += 20;
            step.own.push_back(step.tasks.size());
            step.tasks.push_back(task(store::Op::reduceScatter, computeNs, 5, computeNs));
        }
    }
    return step;
}

TEST(MicroSteps, AreSeenWhenTheFirstForwardLiesInTheStepBefore) {
    EXPECT_EQ(findRepeats(backwardPasses(3, 10, 100, 0)).microSteps, 3U);
    EXPECT_EQ(findRepeats(backwardPasses(3, 10, 100, 100)).microSteps, 3U);
}

TEST(MicroSteps, LayersReducedOneByOneAreNone) {
    EXPECT_EQ(findRepeats(backwardPasses(1, 24, 240, 0)).microSteps, 1U);
    EXPECT_EQ(findRepeats(backwardPasses(1, 24, 240, 200)).microSteps, 1U);
}

TEST(CriticalStep, TransferBesideAStalledHostIsCountedAsFarAsItIsExposed) {
    facts::RankSummary rank;
    rank.hostStalls = {{.step = 0, .startNs = 0, .endNs = 50},
                       {.step = 0, .startNs = 90, .endNs = 105},
                       {.step = 0, .startNs = 400, .endNs = 500}};
    CriticalStep step;
    step.rank = &rank;
    facts::CommTask gather = task(store::Op::allGather, 40, 60, 0, 60);
    EXPECT_DOUBLE_EQ(step.besideHostStallsNs(gather), 20);
    gather.exposedTransferNs = 15;
    EXPECT_DOUBLE_EQ(step.besideHostStallsNs(gather), 15);
    gather.waitNs = 20;  // waiting for others is no transfer
    EXPECT_DOUBLE_EQ(step.besideHostStallsNs(gather), 10);
}

/// ZeRO-2 on paper: gradients leave in `buckets` messages under backward, parameters return in as many under the next
/// forward, or all of them before it.
report::Report playZero2(int buckets, bool returnsUnderForward) {
    constexpr double kBytes = 4e9, kStepNs = 300e6;
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    const double transferNs = 15e3 + kBytes / buckets * 0.75 / 100;
    for (int step = 0; step < 8; ++step) {
        for (int i = 0; i < buckets; ++i) {
            player.beside(world, store::Op::allGather, kBytes / buckets, transferNs);
            if (i == 0 || !returnsUnderForward) player.meet();
            player.compute(kStepNs / 3 / buckets, "forward");
        }
        player.meet();
        for (int i = 0; i < buckets; ++i) {
            player.compute(kStepNs * 2 / 3 / buckets, "backward", 96);
            player.beside(world, store::Op::reduceScatter, kBytes / buckets, transferNs);
        }
        player.meet();
        player.compute(2e6, "adam");
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(Overlap, ParametersThatReturnBeforeForwardAreFound) {
    EXPECT_EQ(test::Player::found(playZero2(16, true)), "");
    const report::Report report = playZero2(16, false);
    ASSERT_EQ(test::Player::found(report), "RS201[0 1 2 3]");
    EXPECT_NEAR(report.findings[0].worthNs(), report.run.stepNs - playZero2(16, true).run.stepNs,
                0.03 * report.run.stepNs);
}

}  // namespace
}  // namespace rankscope::diagnose
