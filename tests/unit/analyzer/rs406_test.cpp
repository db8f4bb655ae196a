// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::analyzer::test {
namespace {

HostedJob starving(std::set<int> ranks) {
    HostedJob job;
    job.ranks = 4;
    job.forwardNs = 5e5;  // of a layer: the host is seldom further ahead of its device than it stands still
    job.pausesPerStep = 3;
    job.starved = std::move(ranks);
    return job;
}

TEST(StarvedHost, PausesInDifferentSmallCallsAreFoundWithTheirRanks) {
    const Report report = playHosted(starving({1, 3})).analyze();
    ASSERT_EQ(foundIn(report), "RS406[1 3]");
    const Finding& finding = report.findings[0];
    EXPECT_NE(finding.evidence.facts[0].find("pauses of 3 ms or more"), std::string::npos) << finding.evidence.facts[0];
    EXPECT_FALSE(finding.evidence.rows.empty());
    const double measured = report.run.stepNs - playHosted(HostedJob(starving({}))).analyze().run.stepNs;
    EXPECT_GE(measured, finding.savingLowNs - 0.03 * report.run.stepNs);
    EXPECT_LE(measured, finding.savingHighNs + 0.03 * report.run.stepNs);
}

TEST(StarvedHost, OneStepIsInconclusive) {
    HostedJob job = starving({1});
    job.steps = 2;
    job.pausesPerStep = 8;
    const Report report = playHosted(job).analyze();
    const Finding* finding = findingOf(report, "RS406");
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->verdict, Verdict::inconclusive);
    EXPECT_EQ(finding->ranks, std::vector<int>{1});
}

TEST(StarvedHost, OneCallThatIsSlowAgainAndAgainHasAReasonOfItsOwn) {
    HostedJob job = starving({1, 3});
    job.pauseInOneCall = true;
    EXPECT_EQ(findingOf(playHosted(job).analyze(), "RS406"), nullptr);
}

TEST(StarvedHost, WhatStopsAllRanksAtOnceIsNoLackOfCores) {
    HostedJob job = starving({0, 1, 2, 3});
    job.pauseTogether = true;
    EXPECT_EQ(findingOf(playHosted(job).analyze(), "RS406"), nullptr);
}

TEST(StarvedHost, SmallCallsThatAreSmallAreNone) {
    HostedJob job = starving({1, 3});
    job.pauseNs = 20e3;
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "");
}

TEST(StarvedHost, PausesThatTheDeviceDoesNotNoticeCostNothing) {
    HostedJob job = starving({1, 3});
    job.forwardNs = 2e6;
    job.pauseNs = 4e6;  // the host is further ahead
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "");
}

}  // namespace
}  // namespace rankscope::analyzer::test
