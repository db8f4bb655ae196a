// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

test::HostedJob starving(std::set<int> ranks) {
    test::HostedJob job;
    job.ranks = 4;
    job.forwardNs = 5e5;  // of a layer: the host is seldom further ahead of its device than it stands still
    job.pausesPerStep = 3;
    job.starved = std::move(ranks);
    return job;
}

TEST(StarvedHost, PausesInDifferentSmallCallsAreFoundWithTheirRanks) {
    const report::Report report = test::playHosted(starving({1, 3})).analyze();
    ASSERT_EQ(test::foundIn(report), "RS406[1 3]");
    const job::Finding& finding = report.findings[0];
    EXPECT_NE(finding.evidence.facts[0].find("pauses of 3 ms or more"), std::string::npos) << finding.evidence.facts[0];
    EXPECT_FALSE(finding.evidence.rows.empty());
    const double measured = report.run.stepNs - test::playHosted(test::HostedJob(starving({}))).analyze().run.stepNs;
    EXPECT_GE(measured, (finding.savingNs ? finding.savingNs->low : 0) - 0.03 * report.run.stepNs);
    EXPECT_LE(measured, (finding.savingNs ? finding.savingNs->high : finding.costNs) + 0.03 * report.run.stepNs);
}

TEST(StarvedHost, OneStepIsInconclusive) {
    test::HostedJob job = starving({1});
    job.steps = 2;
    job.pausesPerStep = 8;
    const report::Report report = test::playHosted(job).analyze();
    const job::Finding* finding = test::findingOf(report, "RS406");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->verdict, job::Verdict::inconclusive);
    EXPECT_EQ(finding->ranks, std::vector<int>{1});
}

TEST(StarvedHost, OneCallThatIsSlowAgainAndAgainHasAReasonOfItsOwn) {
    test::HostedJob job = starving({1, 3});
    job.pauseInOneCall = true;
    EXPECT_EQ(test::findingOf(test::playHosted(job).analyze(), "RS406"), nullptr);
}

TEST(StarvedHost, WhatStopsAllRanksAtOnceIsNoLackOfCores) {
    test::HostedJob job = starving({0, 1, 2, 3});
    job.pauseTogether = true;
    EXPECT_EQ(test::findingOf(test::playHosted(job).analyze(), "RS406"), nullptr);
}

TEST(StarvedHost, SmallCallsThatAreSmallAreNone) {
    test::HostedJob job = starving({1, 3});
    job.pauseNs = 20e3;
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "");
}

TEST(StarvedHost, PausesThatTheDeviceDoesNotNoticeCostNothing) {
    test::HostedJob job = starving({1, 3});
    job.forwardNs = 2e6;
    job.pauseNs = 4e6;  // the host is further ahead
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "");
}

}  // namespace
}  // namespace rankscope::diagnose
