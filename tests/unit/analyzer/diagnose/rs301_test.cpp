// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/diagnose/slow_ranks.h"
#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::diagnose {
namespace {

TEST(Stragglers, OfTwoEachSavesAtMostItsOwnSlowness) {
    test::DdpJob slow;
    slow.noise = 0;
    slow.slow = {{1, 1.4}, {6, 1.2}};
    test::DdpJob balanced = slow;
    balanced.slow = {};
    const report::Report report = test::playDdp(slow).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[1] RS301[6]");
    const double both = report.run.stepNs - test::playDdp(balanced).analyze().run.stepNs;
    EXPECT_NEAR(report.findings[0].costNs, both, 0.03 * report.run.stepNs);  // the slower one's is all of it
    EXPECT_NEAR(report.findings[1].costNs, both / 2, 0.03 * report.run.stepNs);
}

TEST(Stragglers, OfRanksThatShareADeviceNothingIsSaid) {
    test::DdpJob slow;
    slow.slow = {{1, 1.4}};
    test::TraceFixture trace = test::playDdp(slow);
    ASSERT_EQ(test::foundIn(trace.analyze()), "RS301[1]");
    for (const int rank : {0, 1}) trace.loss("shared_device", store::Severity::warning, rank);
    const report::Report report = trace.analyze();
    EXPECT_EQ(test::foundIn(report).find("RS301"), std::string::npos) << test::foundIn(report);
    const auto said = std::ranges::find(report.notJudged, "RS301", &NotJudged::id);
    ASSERT_NE(said, report.notJudged.end());
    EXPECT_NE(said->needs.find("ranks share a device"), std::string::npos) << said->needs;
    EXPECT_FALSE(report.bound.isMeasured) << "a gap on the device may be the other rank's kernel";
}

TEST(Stragglers, ASlowHostKeepsItsRanksTime) {
    test::DdpJob job;
    for (int rank : {4, 5, 6, 7}) job.slow[rank] = 1.3;
    job.slow[1] = 1.5;
    const report::Report report = test::playDdp(job).analyze();
    int ofTheHost = 0;
    for (const job::Finding& f : report.findings)
        if (f.id == "RS301") ofTheHost += f.ranks.front() >= 4;
    EXPECT_EQ(ofTheHost, 0) << test::foundIn(report);
}

/// Rank 5 by `factor` in the steps from `from` until `until`, of 13; the first is warm-up.
test::DdpJob slowIn(int from, int until, double factor) {
    test::DdpJob job;
    job.steps = 13;
    job.slow = {{5, factor}};
    job.slowFrom = from;
    job.slowUntil = until;
    return job;
}

double numberOf(const job::Finding& finding, const std::string& name) {
    for (const auto& [known, value] : finding.evidence.numbers)
        if (known == name) return value;
    return -1;
}

TEST(Stragglers, WhoBecomesSlowHalfwayIsToldWithTheStep) {
    const report::Report report = test::playDdp(slowIn(7, 13, 1.5)).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[5]");
    const job::Finding& finding = report.findings[0];
    EXPECT_EQ(finding.steps, (std::vector<int>{7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(numberOf(finding, "from_step"), 7);
    EXPECT_NEAR(numberOf(finding, "kernel_time_ratio_before"), 1, 0.01);
    EXPECT_NEAR(numberOf(finding, "kernel_time_ratio"), 1.5, 0.01);
    EXPECT_NE(finding.cause.find("(1.00x before step 7)"), std::string::npos) << finding.cause;
    EXPECT_FALSE(finding.savingNs) << "a repair is played in all steps alike";
}

TEST(Stragglers, WhoBecomesSlowerStepByStepIsToldToGrow) {
    test::DdpJob job = slowIn(8, 20, 1.05);
    job.steps = 20;
    job.growth = 0.05;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[5]");
    EXPECT_EQ(numberOf(report.findings[0], "from_step"), 8);
    EXPECT_NEAR(numberOf(report.findings[0], "kernel_time_ratio_at_last"), 1.05 * 1.55, 0.02);
    EXPECT_NE(report.findings[0].cause.find("growing from 1.00x in step 8 to 1.6"), std::string::npos)
        << report.findings[0].cause;
}

TEST(Stragglers, WhoBecomesSlowCostsTheStepsSinceThen) {
    const report::Report halfway = test::playDdp(slowIn(7, 13, 1.5)).analyze();
    const report::Report always = test::playDdp(slowIn(0, 13, 1.5)).analyze();
    ASSERT_EQ(test::foundIn(halfway), "RS301[5]");
    ASSERT_EQ(test::foundIn(always), "RS301[5]");
    EXPECT_NEAR(halfway.findings[0].costNs / always.findings[0].costNs, 1, 0.03);
    EXPECT_NEAR(halfway.findings[0].meanStepNs / always.run.stepNs, 1, 0.03);
}

TEST(Stragglers, WhoIsSlowInMostStepsIsPricedOverAllAndToldWithTheStep) {
    test::DdpJob job = slowIn(6, 21, 1.5);
    job.steps = 21;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[5]");
    EXPECT_EQ(numberOf(report.findings[0], "from_step"), 6);
    EXPECT_NE(report.findings[0].cause.find("(1.50x from step 6 on, 1.00x before)"), std::string::npos)
        << "the first ratio is that of all steps: " << report.findings[0].cause;
    EXPECT_EQ(report.findings[0].steps.size(), 20u);
    EXPECT_EQ(report.findings[0].meanStepNs, 0) << "its share is of the typical step of all";
}

TEST(Stragglers, OfAChangeTheThresholdIsThatOfAWholeRun) {
    EXPECT_EQ(test::foundIn(test::playDdp(slowIn(7, 13, 1.06)).analyze()), "RS301[5]");
    EXPECT_EQ(test::foundIn(test::playDdp(slowIn(7, 13, 1.02)).analyze()), "");
}

TEST(Stragglers, FourStepsMakeAChangeAndFewerAreStalls) {
    const report::Report four = test::playDdp(slowIn(9, 13, 1.5)).analyze();
    EXPECT_EQ(test::foundIn(four), "RS301[5]");
    const report::Report three = test::playDdp(slowIn(10, 13, 1.5)).analyze();
    EXPECT_EQ(test::foundIn(three), "RS303[5]");
}

TEST(Stragglers, WhoWasSlowAndRecoveredIsNotToldAsSlow) {
    EXPECT_EQ(test::foundIn(test::playDdp(slowIn(1, 7, 1.5)).analyze()), "");
    EXPECT_EQ(test::foundIn(test::playDdp(slowIn(5, 11, 1.5)).analyze()), "");  // two steps before the end
}

TEST(Stragglers, AMarkTellsHowLongItsKernelWaitsAndWhatOfItIsExposed) {
    facts::CommTask task;
    task.lastRank = 3;
    task.waitNs = 71'800'000;
    task.exposedWaitNs = 71'790'000;
    EXPECT_EQ(waitText(task), "71.8 ms for rank 3");
    task.exposedWaitNs = 69'100'000;
    EXPECT_EQ(waitText(task), "71.8 ms for rank 3, 69.1 ms of it exposed");
}

TEST(Stragglers, NoiseIsNoChange) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        test::DdpJob job;
        job.steps = 13;
        job.noise = 0.1;
        job.seed = seed;
        EXPECT_EQ(test::foundIn(test::playDdp(job).analyze()), "") << "seed " << seed;
    }
}

}  // namespace
}  // namespace rankscope::diagnose
