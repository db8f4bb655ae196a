// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

constexpr int kRanks = 4;
constexpr int kLayers = 12;
constexpr int64_t kCallNs = 5 * test::kUs;

/// Data parallel, one reduction per layer; the host launches a whole step at once, but for the reductions of late
/// layers.
struct LateJob {
    int64_t lateNs = 0;  // from the end of a layer's backward to the call of its reduction; 0: called with the layer
    int firstLate = 0;   // layers, in the order of backward
    int lastLate = kLayers - 1;
    bool eventsRecorded = true;
    int64_t transferNs = test::kMs;
    int64_t pauseNs = 0;  // of the host as a whole, in front of backward, behind a blocking call
};

test::TraceFixture playLate(const LateJob& job) {
    test::TraceFixture trace(kRanks, kRanks);
    trace.links("intra:gbps=200;inter:gbps=200");
    const int world = trace.communicator({0, 1, 2, 3});
    int64_t deviceNs = 0;
    for (int step = 0; step < 6; ++step) {
        const int64_t startNs = deviceNs;
        int64_t hostNs = startNs;
        int64_t networkNs = 0;
        const auto launch = [&](const char* name, int64_t durNs) {
            const int64_t beginNs = std::max(deviceNs, hostNs + kCallNs) + test::kUs;
            for (int rank = 0; rank < kRanks; ++rank)
                trace.launchedKernel(rank, beginNs, durNs, name, 64, hostNs, kCallNs);
            hostNs += kCallNs;
            deviceNs = beginNs + durNs;
        };
        for (int layer = 0; layer < kLayers; ++layer) launch("forward", 2 * test::kMs);
        if (job.pauseNs > 0) {
            for (int rank = 0; rank < kRanks; ++rank)
                trace.call(rank, hostNs, deviceNs - hostNs, "cudaStreamSynchronize", store::ApiKind::synchronize);
            hostNs = deviceNs + job.pauseNs;
        }
        for (int layer = 0; layer < kLayers; ++layer) {
            launch("backward", 4 * test::kMs);
            const int64_t recordedNs = hostNs++;
            const bool late = job.lateNs > 0 && layer >= job.firstLate && layer <= job.lastLate;
            const int64_t calledNs = late ? deviceNs + job.lateNs : hostNs++;
            if (job.eventsRecorded)
                for (int rank = 0; rank < kRanks; ++rank) trace.streamWait(rank, recordedNs, calledNs);
            trace.calledAt(calledNs);
            const int64_t arrivalNs = std::max({deviceNs, networkNs, calledNs}) + 2 * test::kUs;
            networkNs = trace.collective(world, store::Op::allReduce, 100'000'000,
                                         std::vector<int64_t>(kRanks, arrivalNs), job.transferNs);
        }
        deviceNs = std::max(deviceNs, networkNs);
        launch("adam", test::kMs);
        for (int rank = 0; rank < kRanks; ++rank) trace.step(rank, step, startNs, deviceNs - startNs, step == 0);
    }
    return trace;
}

double inTimeNs() {
    return playLate(LateJob{}).analyze().run.stepNs;
}

TEST(LateLaunch, ReductionsCalledLongAfterTheirDataAreFound) {
    LateJob job;
    job.lateNs = 10 * test::kMs;
    const report::Report report = playLate(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS201[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("launched too late: the host calls 12 of 12"), std::string::npos)
        << report.findings[0].cause;
    EXPECT_GE(report.findings[0].costNs, report.run.stepNs - inTimeNs());
    EXPECT_LE(report.findings[0].costNs, 1.2 * (report.run.stepNs - inTimeNs()));
}

TEST(LateLaunch, OneOfThemIsEnoughWhenAllWaitForIt) {
    LateJob job;
    job.lateNs = 10 * test::kMs;
    job.firstLate = kLayers - 1;
    const report::Report report = playLate(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS201[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("1 of 12"), std::string::npos) << report.findings[0].cause;
    EXPECT_GE(report.findings[0].costNs, report.run.stepNs - inTimeNs());
    EXPECT_LE(report.findings[0].costNs, 1.2 * (report.run.stepNs - inTimeNs()));
}

TEST(LateLaunch, InTimeOrHiddenItIsNone) {
    const report::Report healthy = playLate(LateJob{}).analyze();
    EXPECT_EQ(test::foundIn(healthy) + test::notedIn(healthy), "");
    LateJob hidden;
    hidden.lateNs = 10 * test::kMs;
    hidden.lastLate = kLayers - 5;  // 16 ms of backward are still to come
    const report::Report report = playLate(hidden).analyze();
    EXPECT_EQ(test::foundIn(report) + test::notedIn(report), "");
}

TEST(LateLaunch, JustUnderTheFloorIsANote) {
    LateJob job;
    job.lateNs = 2 * test::kMs;  // of 76
    const report::Report report = playLate(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS201");
}

TEST(LateLaunch, WithoutEventsNothingTellsWhenTheDataWereThere) {
    LateJob job;
    job.lateNs = 10 * test::kMs;
    job.eventsRecorded = false;
    const report::Report report = playLate(job).analyze();
    EXPECT_EQ(test::foundIn(report) + test::notedIn(report), "");
}

TEST(LateLaunch, AHostThatIsLateWithEverythingIsAnotherDiagnosis) {
    LateJob job;
    job.pauseNs = 8 * test::kMs;
    EXPECT_EQ(test::foundIn(playLate(job).analyze()), "RS402[0 1 2 3]");
}

}  // namespace
}  // namespace rankscope::diagnose
