// SPDX-License-Identifier: Apache-2.0
// The rules every diagnosis keeps, one test each, on the whole analysis.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

/// Two ranks, three steps of 10 ms; `play` fills each one.
template <typename Play>
report::Report threeSteps(Play play) {
    test::TraceFixture trace(2, 2);
    const int world = trace.communicator({0, 1});
    for (int step = 0; step < 4; ++step) {
        const int64_t start = step * 10 * test::kMs;
        play(trace, world, start);
        for (int rank = 0; rank < 2; ++rank) trace.step(rank, step, start, 10 * test::kMs, step == 0);
    }
    return trace.analyze();
}

TEST(Rules, UnionsNeverSums) {
    // Three kernels at once are one stretch of compute; a collective beside them is not exposed, nor is what two
    // collectives share counted twice.
    const report::Report report = threeSteps([](test::TraceFixture& trace, int world, int64_t start) {
        for (int rank = 0; rank < 2; ++rank) {
            trace.kernel(rank, start, 4 * test::kMs, "gemm", 64);
            trace.kernel(rank, start + test::kMs, 3 * test::kMs, "gelu", 8);
            trace.kernel(rank, start + test::kMs, 2 * test::kMs, "norm", 8);
        }
        trace.collective(world, store::Op::allReduce, 1'000'000, {start + 3 * test::kMs, start + 3 * test::kMs},
                         2 * test::kMs);
        trace.collective(world, store::Op::allGather, 1'000'000, {start + 3 * test::kMs, start + 3 * test::kMs},
                         3 * test::kMs);
    });
    for (const report::BreakdownRow& row : report.breakdown) {
        EXPECT_EQ(row.total.computeNs, 3 * 4 * test::kMs);
        EXPECT_EQ(row.total.exposedTransferNs, 3 * 2 * test::kMs);
        EXPECT_EQ(row.total.overlappedCommNs, 3 * 1 * test::kMs);
        EXPECT_EQ(row.total.idleNs, 3 * 4 * test::kMs);
        EXPECT_EQ(row.total.computeNs + row.total.exposedCommNs() + row.total.memoryNs + row.total.idleNs,
                  row.total.stepNs);
    }
}

TEST(Rules, ExposedIsNotBlocking) {
    // The slow rank makes its peers stand in collectives without compute: exposed, but what blocks them is its compute.
    // Overlap is not to blame.
    test::DdpJob job;
    job.slow = {{5, 2.0}};
    const report::Report report = test::playDdp(job).analyze();
    const auto exposed = [&](int rank) { return report.breakdown.at(static_cast<size_t>(rank)).total.exposedCommNs(); };
    EXPECT_GT(exposed(0), 4 * exposed(5));
    EXPECT_EQ(test::foundIn(report), "RS301[5]");
}

TEST(Rules, OccupantIsNotProducer) {
    // While rank 1 computes, an NCCL kernel occupies rank 0. The rank that waits in it is not the one to look at.
    test::FsdpJob job;
    job.slow = {{1, 1.6}};
    const report::Report report = test::playFsdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[1]");
    EXPECT_EQ(std::count(report.findings[0].affectedRanks.begin(), report.findings[0].affectedRanks.end(), 1), 0);
    EXPECT_EQ(report.findings[0].affectedRanks.size(), 7u);
}

TEST(Rules, ACollectivesDurationIsNotItsTransfer) {
    const report::Report report = threeSteps([](test::TraceFixture& trace, int world, int64_t start) {
        trace.kernel(0, start, 1 * test::kMs, "gemm", 64);
        trace.kernel(1, start, 6 * test::kMs, "gemm", 64);
        trace.collective(world, store::Op::allReduce, 2'000'000, {start + test::kMs, start + 6 * test::kMs},
                         test::kMs);  // 6 ms long on rank 0
    });
    ASSERT_EQ(report.collectives.size(), 1u);
    EXPECT_EQ(report.collectives[0].transferNs, 3 * test::kMs);
    EXPECT_EQ(report.collectives[0].waitNs, 3 * 5 * test::kMs);
    // Of a rank and a step: one of the two waits 5 ms, both transfer for 1 ms.
    EXPECT_DOUBLE_EQ(report.collectives[0].waitNsPerRankStep.value_or(0), 2.5 * test::kMs);
    EXPECT_DOUBLE_EQ(report.collectives[0].transferNsPerRankStep.value_or(0), 1.0 * test::kMs);
    EXPECT_DOUBLE_EQ(report.collectives[0].countPerStep, 1);
    EXPECT_NEAR(report.collectives[0].algbw.value_or(0), 2e9, 1e3);
}

TEST(Rules, Rank0IsNotRepresentative) {
    // Only the last rank stands out; whatever is read off rank 0 alone is healthy.
    for (int rank : {0, 7}) {
        test::HostedJob job;
        job.readsPerStep = 4;
        job.readNs = 4e6;
        job.troubled = {rank};
        const report::Report report = test::playHosted(job).analyze();
        const job::Finding* finding = test::findingOf(report, "RS402");
        ASSERT_NE(finding, nullptr) << test::foundIn(report);
        EXPECT_EQ(finding->ranks, std::vector<int>{rank});
    }
}

TEST(Rules, HostSyncTimeIsNotDeviceStall) {
    // The host waits for a device that is busy all the while: nothing stalls.
    const report::Report report = threeSteps([](test::TraceFixture& trace, int, int64_t start) {
        for (int rank = 0; rank < 2; ++rank) {
            for (int i = 0; i < 10; ++i)
                trace.launchedKernel(rank, start + i * test::kMs, test::kMs, "gemm", 64, start + i * 5 * test::kUs,
                                     4 * test::kUs);
            trace.call(rank, start + 50 * test::kUs, 9'900 * test::kUs, "cudaDeviceSynchronize",
                       store::ApiKind::synchronize);
        }
    });
    EXPECT_EQ(test::foundIn(report), "");
    for (const report::BreakdownRow& row : report.breakdown) EXPECT_EQ(row.total.idleNs, 0);
}

TEST(Rules, GraphKernelsHaveNoLaunchRow) {
    // One graph launch puts many kernels on the device, none with a launch of its own: gaps between them are not late
    // launches.
    const report::Report report = threeSteps([](test::TraceFixture& trace, int, int64_t start) {
        for (int rank = 0; rank < 2; ++rank) {
            trace.call(rank, start, 10 * test::kUs, "cudaGraphLaunch", store::ApiKind::graphLaunch);
            for (int i = 0; i < 200; ++i)
                trace.kernel(rank, start + 20 * test::kUs + i * 40 * test::kUs, 25 * test::kUs, "node", 8);
        }
    });
    EXPECT_EQ(test::foundIn(report), "");
    for (const report::BreakdownRow& row : report.breakdown) EXPECT_EQ(row.idleByCauseNs.at("late_launch"), 0);
}

TEST(Rules, WhatDurationsTellNeedsNoClock) {
    // Who was last is hidden under the clock bound, but its kernels are the shortest of every collective, on its own
    // clock.
    test::DdpJob job;
    job.noise = 0.002;
    job.ranksPerHost = 1;
    job.slow = {{3, 1.1}};
    test::TraceFixture unsure = test::playDdp(job);
    unsure.clockBound(500 * test::kMs);
    EXPECT_EQ(test::foundIn(unsure.analyze()), "RS301[3]");
}

TEST(Rules, AVerdictUnderTheClockBoundIsInconclusive) {
    // A broadcast's kernels need not end together, so their durations do not tell who came last: only arrivals do,
    // compared across hosts.
    const auto play = [](int64_t clockBoundNs) {
        test::TraceFixture trace(4, 1);
        trace.clockBound(clockBoundNs);
        const int world = trace.communicator({0, 1, 2, 3});
        for (int step = 0; step < 9; ++step) {
            const int64_t start = step * 20 * test::kMs;
            std::vector<int64_t> arrivals;
            for (int rank = 0; rank < 4; ++rank) {
                const int64_t compute = rank == 2 ? 15 * test::kMs : 10 * test::kMs;
                trace.kernel(rank, start, compute, "gemm", 64);
                arrivals.push_back(start + compute);
                trace.step(rank, step, start, 20 * test::kMs, step == 0);
            }
            trace.collective(world, store::Op::broadcast, 1'000'000, arrivals, test::kMs);
        }
        return trace.analyze();
    };
    EXPECT_EQ(test::foundIn(play(4 * test::kMs)), "RS301[2]");
    const report::Report unsure = play(6 * test::kMs);
    ASSERT_EQ(test::foundIn(unsure), "RS301?[2]");
    EXPECT_EQ(unsure.findings[0].whyInconclusive,
              "its kernels are slower, but who arrives last is hidden by the clock bound of 6000.0 us between hosts");
}

TEST(Rules, AClaimNeedsEnoughSteps) {
    test::PipelineJob job;
    job.ranks = 4;
    job.microBatches = 4;
    job.steps = 3;  // one of them is warm-up
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS101?[0 1 2 3]");
    job.steps = 4;
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS101[0 1 2 3]");
}

TEST(Rules, KernelNamesProveNoAlgorithm) {
    // The paper jobs' NCCL kernels are called ..._RING_LL, as NCCL names its generic kernels whatever they run.
    const report::Report report = test::playDdp(test::DdpJob()).analyze();
    ASSERT_FALSE(report.collectives.empty());
    for (const report::CollectiveRow& row : report.collectives) {
        EXPECT_EQ(row.algorithm, "");
        EXPECT_EQ(row.protocol, "");
    }
}

TEST(Rules, ADeeperCauseKeepsItsTime) {
    // The slow rank and the small buckets both cost; together they cannot cost more than the step.
    test::DdpJob job;
    job.messagesPerLayer = 200;
    job.layerBytes = 20e6;
    job.slow = {{2, 1.5}};
    const report::Report report = test::playDdp(job).analyze();
    double saving = 0;
    for (const job::Finding& finding : report.findings) saving += finding.worthNs();
    EXPECT_NE(test::idsIn(report).find("RS202"), std::string::npos) << test::idsIn(report);
    EXPECT_LT(saving, report.run.stepNs);
}

}  // namespace
}  // namespace rankscope::diagnose
