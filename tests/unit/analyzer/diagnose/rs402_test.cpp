// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

test::HostedJob reading(int perStep, double ns) {
    test::HostedJob job;
    job.ranks = 4;
    job.readsPerStep = perStep;
    job.readNs = ns;
    return job;
}

TEST(SynchronisationStall, HostWorkBehindABlockingCallIsFoundWithTheCall) {
    const report::Report report = test::playHosted(reading(4, 2e6)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS402[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("cudaStreamSynchronize"), std::string::npos) << report.findings[0].cause;
    const double measured = report.run.stepNs - test::playHosted(reading(0, 0)).analyze().run.stepNs;
    EXPECT_NEAR(report.findings[0].worthNs(), measured, 0.03 * report.run.stepNs);
    ASSERT_FALSE(report.findings[0].evidence.rows.empty());
    EXPECT_EQ(report.findings[0].evidence.rows[0].table, "api_call");
}

TEST(SynchronisationStall, OnOneRankOthersWaitAndItKeepsTheTime) {
    test::HostedJob job = reading(4, 2e6);
    job.troubled = {1};
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS402[1]");
    EXPECT_EQ(report.findings[0].affectedRanks, (std::vector<int>{0, 2, 3}));
}

TEST(SynchronisationStall, WaitingWithoutHostWorkCostsALaunchOnly) {
    // The host spends nearly the whole step inside the calls, and the device works all the while.
    EXPECT_EQ(test::foundIn(test::playHosted(reading(4, 0)).analyze()), "");
}

TEST(SynchronisationStall, JustUnderTheFloorIsANote) {
    const report::Report report = test::playHosted(reading(1, 1.8e6)).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS402");
}

TEST(SynchronisationStall, OneAnalysedStepIsTooFew) {
    test::HostedJob job = reading(4, 2e6);
    job.steps = 2;
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS402?[0 1 2 3]");
}

}  // namespace
}  // namespace rankscope::diagnose
