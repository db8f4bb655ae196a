// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/report/sentences.h"
#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

test::HostedJob pausing(std::map<int, std::pair<int, double>> pauses) {
    test::HostedJob job;
    job.ranks = 4;
    job.pauses = std::move(pauses);
    return job;
}

TEST(TransientStall, PausesOfChangingRanksAreFoundWithTheirStepsAndRanks) {
    const report::Report report = test::playHosted(pausing({{3, {1, 30e6}}, {8, {2, 30e6}}})).analyze();
    ASSERT_EQ(test::foundIn(report), "RS303[1 2]");
    EXPECT_EQ(report.findings[0].steps, (std::vector<int>{3, 8}));
    // Two pauses of 30 ms, less the 2 ms of the first kernel, over eleven steps.
    EXPECT_NEAR(report.findings[0].worthNs(), 2 * 28e6 / 11, 0.01 * report.run.stepNs);
    EXPECT_NE(report.findings[0].cause.find("launched nothing"), std::string::npos) << report.findings[0].cause;
}

TEST(TransientStall, OneSlowStepIsNotSaidToComeBack) {
    const report::Report report = test::playHosted(pausing({{5, {1, 60e6}}})).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS303");
}

TEST(TransientStall, WhatCameOnceIsExplainedAndInTheHeadline) {
    const report::Report report = test::playHosted(pausing({{5, {1, 600e6}}})).analyze();
    EXPECT_EQ(test::notedIn(report), "RS303");
    EXPECT_TRUE(report.accounting.unexplained.empty()) << report::verdictText(report);
    EXPECT_NE(report::verdictText(report).find("in step 5, rank 1 stalled"), std::string::npos)
        << report::verdictText(report);
    const report::Report quiet = test::playHosted(pausing({})).analyze();
    EXPECT_EQ(report::verdictText(quiet).find("stalled"), std::string::npos) << report::verdictText(quiet);
}

TEST(TransientStall, OneInFiftyStaysUnderTheFloor) {
    test::HostedJob job = pausing({{20, {1, 30e6}}, {40, {3, 30e6}}});
    job.ranks = 2;
    job.pauses[40].first = 0;
    job.steps = 51;
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "");
}

TEST(TransientStall, TwoModesOfStepsAreNone) {
    test::HostedJob job;
    job.ranks = 4;
    for (int step = 1; step < job.steps; step += 2) job.pauses[step] = {1, 20e6};
    const report::Report report = test::playHosted(job).analyze();
    EXPECT_EQ(test::findingOf(report, "RS303"), nullptr);
}

TEST(TransientStall, StepsWithMoreWorkAreNone) {
    test::HostedJob job;
    job.ranks = 2;
    job.extraWork = {{3, {1, 0.5}}, {8, {0, 0.5}}};
    EXPECT_EQ(test::findingOf(test::playHosted(job).analyze(), "RS303"), nullptr);
}

TEST(TransientStall, OfManyTimesATypicalStepAreAShareOfTheMeanStep) {
    const report::Report report = test::playHosted(pausing({{3, {1, 900e6}}, {8, {2, 900e6}}})).analyze();
    const job::Finding* finding = test::findingOf(report, "RS303");
    ASSERT_NE(finding, nullptr);
    EXPECT_GT(finding->worthNs(), report.run.stepNs);
    EXPECT_LT(finding->severity, 1);
    EXPECT_LT(job::savingShare(*finding, report.run.stepNs), 1);
}

TEST(TransientStall, JustUnderTheFloorIsANote) {
    const report::Report report = test::playHosted(pausing({{3, {1, 11e6}}, {8, {2, 11e6}}})).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS303");
}

}  // namespace
}  // namespace rankscope::diagnose
