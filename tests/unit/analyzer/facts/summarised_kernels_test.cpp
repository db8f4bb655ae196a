// SPDX-License-Identifier: Apache-2.0
// Sums of kernels that a light recording holds, cut where the host marks steps, in the steps of the device.
#include "analyzer/facts/summarised_kernels.h"

#include <gtest/gtest.h>

namespace rankscope::facts {
namespace {

/// One rank with two steps of 100 ns; `summary` is what its calls alone told: 60 ns of communication in each.
struct SummedRank {
    RankEvents events;
    std::vector<StepWindow> steps{{0, 1000, 100, false}, {1, 1100, 100, false}};
    RankSummary summary;

    SummedRank() {
        summary.idleByCauseNs.assign(6, 7);
        summary.idleGaps.emplace_back();
        for (const StepWindow& step : steps) {
            Attribution& times = summary.steps.emplace_back();
            times.stepNs = 100;
            times.exposedWaitNs = 40;
            times.exposedTransferNs = 20;
            times.idleNs = 40;
            CommTask& task = summary.communication.emplace_back();
            task.step = step.step;
            task.exposedWaitNs = 40;
            task.exposedTransferNs = 20;
        }
    }

    void span(int64_t startNs, int64_t durNs, int64_t computeNs, int64_t ncclNs, int64_t busyNs) {
        store::KernelSpan& row = events.kernelSpans.emplace_back();
        row.startNs = startNs;
        row.durNs = durNs;
        row.computeNs = computeNs;
        row.ncclNs = ncclNs;
        row.busyNs = busyNs;
    }

    void kernels(int32_t name, int64_t count, int64_t medianNs, store::NcclKernel nccl = store::NcclKernel::no) {
        store::KernelSummary& row = events.kernelSummaries.emplace_back();
        row.startNs = events.kernelSpans.back().startNs;
        row.durNs = events.kernelSpans.back().durNs;
        row.nameId = name;
        row.gridBlocks = 4;
        row.blockThreads = 32;
        row.count = count;
        row.medianNs = medianNs;
        row.totalNs = count * medianNs;
        row.nccl = nccl;
    }

    void add() { addSummarisedKernels(events, steps, summary); }
};

TEST(SummarisedKernels, SayWhatWasComputedAndWhatOfTheCommunicationHid) {
    SummedRank rank;
    for (const int64_t startNs : {1000, 1100}) {
        rank.span(startNs, 100, 70, 60, 90);  // 20 of 60 exposed, 10 idle
        rank.kernels(5, 10, 7);
        rank.kernels(6, 1, 60, store::NcclKernel::byName);
    }
    rank.add();
    for (const Attribution& step : rank.summary.steps) {
        EXPECT_EQ(step.computeNs, 70);
        EXPECT_EQ(step.exposedCommNs(), 20);
        EXPECT_EQ(step.exposedWaitNs, 13);  // in the proportion that calls tell
        EXPECT_EQ(step.overlappedCommNs, 40);
        EXPECT_EQ(step.idleNs, 10);
        EXPECT_EQ(step.computeNs + step.exposedCommNs() + step.memoryNs + step.idleNs, step.stepNs);
    }
    ASSERT_EQ(rank.summary.kernels.size(), 2u);  // NCCL's are told by calls
    EXPECT_EQ(rank.summary.kernels[0].key, (KernelKey{5, 4, 32}));
    EXPECT_EQ(rank.summary.kernels[0].count, 10);
    EXPECT_EQ(rank.summary.kernels[0].totalNs, 70);
    EXPECT_EQ(rank.summary.kernels[0].medianNs, 7);
    EXPECT_EQ(rank.summary.communication[0].exposedWaitNs, 13);
    EXPECT_EQ(rank.summary.communication[0].exposedTransferNs, 6);
    EXPECT_TRUE(rank.summary.idleGaps.empty());
    EXPECT_EQ(rank.summary.idleByCauseNs[static_cast<size_t>(IdleCause::other)], 20);
}

TEST(SummarisedKernels, CountByThePartOfTheirSpanThatLiesInAStep) {
    SummedRank rank;
    rank.span(950, 100, 80, 0, 80);  // half of it before the first step
    rank.kernels(5, 20, 4);
    rank.span(1050, 100, 40, 0, 40);  // a half for each step
    rank.kernels(5, 20, 2);
    rank.add();
    EXPECT_EQ(rank.summary.steps[0].computeNs, 60);
    EXPECT_EQ(rank.summary.steps[1].computeNs, 20);
    ASSERT_EQ(rank.summary.kernels.size(), 2u);
    EXPECT_EQ(rank.summary.kernels[0].count, 20);
    EXPECT_EQ(rank.summary.kernels[0].totalNs, 60);
    EXPECT_EQ(rank.summary.kernels[0].medianNs, 3);
    EXPECT_EQ(rank.summary.kernels[1].count, 10);
}

TEST(SummarisedKernels, OfSeveralDevicesTellNoTimes) {
    SummedRank rank;
    rank.span(1000, 200, 0, 0, 0);
    rank.events.kernelSpans.back().computeNs.reset();
    rank.kernels(5, 20, 4);
    rank.add();
    EXPECT_EQ(rank.summary.steps[0].computeNs, 0);
    EXPECT_EQ(rank.summary.steps[0].exposedWaitNs, 40);
    ASSERT_EQ(rank.summary.kernels.size(), 2u);
    EXPECT_EQ(rank.summary.kernels[0].count, 10);
}

TEST(SummarisedKernels, AreNoneInAnyOtherRecording) {
    SummedRank rank;
    rank.summary.kernels.emplace_back();
    rank.add();
    EXPECT_EQ(rank.summary.kernels.size(), 1u);
    EXPECT_EQ(rank.summary.idleGaps.size(), 1u);
    EXPECT_EQ(rank.summary.steps[0].idleNs, 40);
}

}  // namespace
}  // namespace rankscope::facts
