// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

test::HostedJob copying(double bytes) {
    test::HostedJob job;
    job.ranks = 4;
    job.pageableBytes = bytes;
    return job;
}

TEST(PageableCopies, ThatComputeWaitsForAreFound) {
    const report::Report report = test::playHosted(copying(100e6)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS405[0 1 2 3]");
    const double measured = report.run.stepNs - test::playHosted(copying(0)).analyze().run.stepNs;
    EXPECT_NEAR(report.findings[0].worthNs(), measured, 0.03 * report.run.stepNs);
    EXPECT_EQ(report.findings[0].evidence.rows.at(0).table, "memcpy");
}

TEST(PageableCopies, TheLeastThatIsSavedIsThatOfPinnedMemoryAlone) {
    const report::Report report = test::playHosted(copying(100e6)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS405[0 1 2 3]");
    ASSERT_TRUE(report.findings[0].savingNs);
    // The copies stay in the stream that computes, at 25 GB/s (costs::kUnseenPinnedGbps).
    const double stillTakes = 100e6 / 25;
    EXPECT_NEAR(report.findings[0].savingNs->low, report.findings[0].savingNs->expected - stillTakes,
                0.03 * report.run.stepNs);
}

TEST(PageableCopies, OfOneRankAreThatRanks) {
    test::HostedJob job = copying(100e6);
    job.troubled = {2};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS405[2]");
}

TEST(PageableCopies, SmallOnesAreStagedAtOnce) {
    const report::Report report = test::playHosted(copying(60e3)).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "");
}

TEST(PageableCopies, JustUnderTheFloorAreANote) {
    const report::Report report = test::playHosted(copying(20e6)).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS405");
}

}  // namespace
}  // namespace rankscope::diagnose
