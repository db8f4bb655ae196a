// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

TEST(LaunchBound, ManyTinyKernelsThatStartAsLaunchedAreFound) {
    test::HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.launchNs = 10e3;
    test::HostedJob fixed = job;
    fixed.pieces = 0;
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS401[0 1 2 3]");
    // The pieces' own 3 ms stay: it is the launches that go.
    const double measured = report.run.stepNs - test::playHosted(fixed).analyze().run.stepNs - 1500 * 2e3;
    EXPECT_NEAR(report.findings[0].worthNs(), measured, 0.03 * report.run.stepNs);
}

TEST(LaunchBound, OnlyTheRankThatIsBoundIsNamed) {
    test::HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.launchNs = 10e3;
    job.troubled = {2};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS401[2]");
}

TEST(LaunchBound, ALessBoundRankIsNamedToo) {
    test::HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.fewerPieces[2] = 600;
    job.launchNs = 10e3;
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS401[0 1 2 3]");
}

TEST(LaunchBound, WhatTheHostDoesForMillisecondsIsNoLaunching) {
    test::HostedJob job;
    job.ranks = 4;
    job.pieces = 60;
    job.launchNs = 3e6;
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "");
}

TEST(LaunchBound, AHostAheadOfItsDeviceIsNot) {
    EXPECT_EQ(test::foundIn(test::playHosted(test::HostedJob()).analyze()), "");
}

TEST(LaunchBound, JustUnderTheFloorIsANote) {
    test::HostedJob job;
    job.ranks = 4;
    job.pieces = 150;  // 2 ms of a step of 74
    job.launchNs = 10e3;
    const report::Report report = test::playHosted(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS401");
}

TEST(LaunchBound, WithoutHostCallsNothingIsClaimed) {
    test::HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.launchNs = 10e3;
    job.hostRecorded = false;
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "");
}

}  // namespace
}  // namespace rankscope::diagnose
