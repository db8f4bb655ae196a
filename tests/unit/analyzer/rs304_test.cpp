// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::analyzer::test {
namespace {

TEST(UnevenWork, ARankWithLargerGridsIsFoundAndIsNoStraggler) {
    HostedJob job;
    job.extraWork = {{-1, {5, 0.4}}};
    const Report report = playHosted(job).analyze();
    ASSERT_EQ(foundIn(report), "RS304[5]");
    // Spread over eight ranks: 40 % more on one of them is 5 % more on each.
    const double compute = 36 * job.forwardNs;
    EXPECT_NEAR(*report.findings[0].savingNsPerStep, 0.35 * compute, 0.03 * report.run.stepNs);
}

TEST(UnevenWork, OfChangingRanksIsFoundToo) {
    HostedJob job;
    job.ranks = 4;
    for (int step = 0; step < job.steps; ++step) job.extraWork[step] = {step % 4, 0.4};
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "RS304[0 1 2 3]");
}

TEST(UnevenWork, ASlowDeviceIsAnotherDiagnosis) {
    HostedJob job;
    job.slow = {{5, 1.4}};
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "RS301[5]");
}

TEST(UnevenWork, EqualWorkIsNone) { EXPECT_EQ(foundIn(playHosted(HostedJob()).analyze()), ""); }

TEST(UnevenWork, AHeavyPipelineStageIsNotComparedWithOthers) {
    PipelineJob job;
    job.ranks = 8;
    job.heavy = {{1, 1.5}};
    EXPECT_EQ(findingOf(playPipeline(job).analyze(), "RS304"), nullptr);
}

TEST(UnevenWork, JustUnderTheThresholdIsNone) {
    HostedJob job;
    job.extraWork = {{-1, {5, 0.03}}};
    EXPECT_EQ(foundIn(playHosted(job).analyze()), "");
}

}  // namespace
}  // namespace rankscope::analyzer::test
