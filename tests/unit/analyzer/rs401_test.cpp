// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::analyzer::test {
namespace {

TEST(LaunchBound, ManyTinyKernelsThatStartAsLaunchedAreFound) {
    HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.launchNs = 10e3;
    HostedJob fixed = job;
    fixed.pieces = 0;
    const Report report = playHosted(job).analyze();
    ASSERT_EQ(foundIn(report), "RS401[0 1 2 3]");
    // The pieces' own 3 ms stay: it is the launches that go.
    const double measured = report.run.stepNs - playHosted(fixed).analyze().run.stepNs - 1500 * 2e3;
    EXPECT_NEAR(*report.findings[0].savingNsPerStep, measured, 0.03 * report.run.stepNs);
}

TEST(LaunchBound, OnlyTheRankThatIsBoundIsNamed) {
    HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.launchNs = 10e3;
    job.troubled = {2};
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "RS401[2]");
}

TEST(LaunchBound, ALessBoundRankIsNamedToo) {
    HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.fewerPieces[2] = 600;
    job.launchNs = 10e3;
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "RS401[0 1 2 3]");
}

TEST(LaunchBound, WhatTheHostDoesForMillisecondsIsNoLaunching) {
    HostedJob job;
    job.ranks = 4;
    job.pieces = 60;
    job.launchNs = 3e6;
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "");
}

TEST(LaunchBound, AHostAheadOfItsDeviceIsNot) {
    EXPECT_EQ(foundIn(playHosted(HostedJob()).analyze()), "");
}

TEST(LaunchBound, JustUnderTheFloorIsANote) {
    HostedJob job;
    job.ranks = 4;
    job.pieces = 150;  // 2 ms of a step of 74
    job.launchNs = 10e3;
    const Report report = playHosted(job).analyze();
    EXPECT_EQ(foundIn(report), "");
    EXPECT_EQ(notedIn(report), "RS401");
}

TEST(LaunchBound, WithoutHostCallsNothingIsClaimed) {
    HostedJob job;
    job.ranks = 4;
    job.pieces = 1500;
    job.launchNs = 10e3;
    job.hostRecorded = false;
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "");
}

}  // namespace
}  // namespace rankscope::analyzer::test
