// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::analyzer::test {
namespace {

HostedJob copying(double bytes) {
    HostedJob job;
    job.ranks = 4;
    job.pageableBytes = bytes;
    return job;
}

TEST(PageableCopies, ThatComputeWaitsForAreFound) {
    const Report report = playHosted(copying(100e6)).analyze();
    ASSERT_EQ(foundIn(report), "RS405[0 1 2 3]");
    const double measured = report.run.stepNs - playHosted(copying(0)).analyze().run.stepNs;
    EXPECT_NEAR(*report.findings[0].savingNsPerStep, measured, 0.03 * report.run.stepNs);
    EXPECT_EQ(report.findings[0].evidence.rows.at(0).table, "memcpy");
}

TEST(PageableCopies, OfOneRankAreThatRanks) {
    HostedJob job = copying(100e6);
    job.troubled = {2};
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "RS405[2]");
}

TEST(PageableCopies, SmallOnesAreStagedAtOnce) {
    const Report report = playHosted(copying(60e3)).analyze();
    EXPECT_EQ(foundIn(report), "");
    EXPECT_EQ(notedIn(report), "");
}

TEST(PageableCopies, JustUnderTheFloorAreANote) {
    const Report report = playHosted(copying(20e6)).analyze();
    EXPECT_EQ(foundIn(report), "");
    EXPECT_EQ(notedIn(report), "RS405");
}

}  // namespace
}  // namespace rankscope::analyzer::test
