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

TEST(SynchronisationStall, AValueReadBackIsToBeReadSeldom) {
    const report::Report report = test::playHosted(reading(4, 2e6)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS402[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("waits for the device to finish"), std::string::npos);
    EXPECT_NE(report.findings[0].fix[0].find(".item()"), std::string::npos) << report.findings[0].fix[0];
    EXPECT_EQ(report.findings[0].fix[0].find(".to(device"), std::string::npos) << report.findings[0].fix[0];
}

TEST(SynchronisationStall, ACopyToTheDeviceIsToReturnAtOnce) {
    test::HostedJob job = reading(4, 2e6);
    job.copiesInput = true;
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS402[0 1 2 3]");
    const job::Finding& finding = report.findings[0];
    EXPECT_NE(finding.cause.find("waits for a copy to the device to finish"), std::string::npos) << finding.cause;
    ASSERT_FALSE(finding.evidence.facts.empty());
    EXPECT_NE(finding.evidence.facts[0].find("waiting for a copy to the device"), std::string::npos);
    EXPECT_NE(finding.fix[0].find(".to(device, non_blocking=True)"), std::string::npos) << finding.fix[0];
    EXPECT_EQ(finding.fix[0].find(".item()"), std::string::npos) << finding.fix[0];
}

TEST(SynchronisationStall, AWaitForTheWholeDeviceIsNotTheCopysInFrontOfIt) {
    test::HostedJob job = reading(4, 2e6);
    job.copiesInput = true;
    job.readCall = "cudaDeviceSynchronize";
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS402[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("waits for the device to finish"), std::string::npos);
    EXPECT_EQ(report.findings[0].fix[0].find(".to(device"), std::string::npos) << report.findings[0].fix[0];
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
