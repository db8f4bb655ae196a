// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::analyzer::test {
namespace {

HostedJob churning(int perStep, double ns) {
    HostedJob job;
    job.ranks = 4;
    job.releasesPerStep = perStep;
    job.allocatorNs = ns;
    return job;
}

TEST(AllocatorChurn, FreeingInEveryStepIsFound) {
    const Report report = playHosted(churning(10, 400e3)).analyze();
    ASSERT_EQ(foundIn(report), "RS404[0 1 2 3]");
    const double measured = report.run.stepNs - playHosted(churning(0, 0)).analyze().run.stepNs;
    EXPECT_NEAR(*report.findings[0].savingNsPerStep, measured, 0.03 * report.run.stepNs);
}

TEST(AllocatorChurn, OfOneRankIsThatRanks) {
    HostedJob job = churning(10, 400e3);
    job.troubled = {0};
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "RS404[0]");
}

TEST(AllocatorChurn, NoneWithoutAllocations) {
    EXPECT_EQ(foundIn(playHosted(churning(0, 0)).analyze()), "");
}

TEST(AllocatorChurn, JustUnderTheFloorIsANote) {
    const Report report = playHosted(churning(2, 450e3)).analyze();
    EXPECT_EQ(foundIn(report), "");
    EXPECT_EQ(notedIn(report), "RS404");
}

}  // namespace
}  // namespace rankscope::analyzer::test
