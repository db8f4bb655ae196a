// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

test::HostedJob churning(int perStep, double ns) {
    test::HostedJob job;
    job.ranks = 4;
    job.releasesPerStep = perStep;
    job.allocatorNs = ns;
    return job;
}

TEST(AllocatorChurn, FreeingInEveryStepIsFound) {
    const report::Report report = test::playHosted(churning(10, 400e3)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS404[0 1 2 3]");
    const double measured = report.run.stepNs - test::playHosted(churning(0, 0)).analyze().run.stepNs;
    EXPECT_NEAR(report.findings[0].worthNs(), measured, 0.03 * report.run.stepNs);
}

TEST(AllocatorChurn, OfOneRankIsThatRanks) {
    test::HostedJob job = churning(10, 400e3);
    job.troubled = {0};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS404[0]");
}

report::Report poolThatFills(int steps) {
    test::HostedJob job = churning(40, 400e3);
    job.poolFills = true;
    job.steps = steps;
    return test::playHosted(job).analyze();
}

// First uses: while they become fewer the steps do not tell whether they go on.
TEST(AllocatorChurn, APoolThatFillsIsNone) {
    const report::Report report = poolThatFills(6);
    EXPECT_EQ(test::foundIn(report), "");
    const auto entry = std::ranges::find(report.notJudged, "RS404", &diagnose::NotJudged::id);
    ASSERT_NE(entry, report.notJudged.end());
    EXPECT_NE(entry->needs.find("called less from step to step"), std::string::npos) << entry->needs;
}

TEST(AllocatorChurn, APoolThatIsFullInMostStepsIsJudged) {
    const report::Report report = poolThatFills(12);
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(std::ranges::find(report.notJudged, "RS404", &diagnose::NotJudged::id), report.notJudged.end());
}

TEST(AllocatorChurn, NoneWithoutAllocations) {
    EXPECT_EQ(test::foundIn(test::playHosted(churning(0, 0)).analyze()), "");
}

TEST(AllocatorChurn, JustUnderTheFloorIsANote) {
    const report::Report report = test::playHosted(churning(2, 450e3)).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS404");
}

}  // namespace
}  // namespace rankscope::diagnose
