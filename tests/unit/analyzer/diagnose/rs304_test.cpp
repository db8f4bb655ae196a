// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::diagnose {
namespace {

using store::Op;

TEST(UnevenWork, ARankWithLargerGridsIsFoundAndIsNoStraggler) {
    test::HostedJob job;
    job.extraWork = {{-1, {5, 0.4}}};
    const report::Report report = test::playHosted(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS304[5]");
    // Spread over eight ranks: 40 % more on one of them is 5 % more on each.
    const double compute = 36 * job.forwardNs;
    EXPECT_NEAR(report.findings[0].worthNs(), 0.35 * compute, 0.03 * report.run.stepNs);
}

TEST(UnevenWork, OfChangingRanksIsFoundToo) {
    test::HostedJob job;
    job.ranks = 4;
    for (int step = 0; step < job.steps; ++step) job.extraWork[step] = {step % 4, 0.4};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS304[0 1 2 3]");
}

TEST(UnevenWork, ASlowDeviceIsAnotherDiagnosis) {
    test::HostedJob job;
    job.slow = {{5, 1.4}};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "RS301[5]");
}

/// Layers of four kernels that all ranks run in the same number and shape; rank 5 takes `attention` and `others` times
/// as long for them.
report::Report playSameShapes(double attention, double others) {
    test::Player player(8, 8, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    const auto onRank5 = [](double ns, double factor) {
        std::vector<double> times(8, ns);
        times[5] *= factor;
        return times;
    };
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 6; ++layer) {
            player.compute(onRank5(0.3e6, others), "norm", 128);
            player.compute(onRank5(2.0e6, others), "gemm_in", 256);
            player.compute(onRank5(2.5e6, attention), "attention", 108);
            player.compute(onRank5(1.5e6, others), "gemm_out", 256);
        }
        player.blocking(world, Op::allReduce, 100e6, 1.8e6);
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(UnevenWork, AKernelThatTakesLongerInTheSameShapeWhileTheOthersDoNotIsMoreWork) {
    const report::Report report = playSameShapes(1.6, 1);
    ASSERT_EQ(test::foundIn(report), "RS304[5]");
    const job::Finding& finding = report.findings[0];
    EXPECT_NE(finding.cause.find("whose work depends on the data"), std::string::npos) << finding.cause;
    bool named = false;
    for (const std::string& fact : finding.evidence.facts)
        named = named || fact.find("attention 1.60x as long in the same grid") != std::string::npos;
    EXPECT_TRUE(named);
    // 6 x 1.5 ms more on one rank is an eighth of that more on each.
    EXPECT_NEAR(finding.worthNs(), 6 * 1.5e6 * 7 / 8, 0.03 * report.run.stepNs);
}

TEST(UnevenWork, ADeviceThatIsSlowerInMostKernelsIsAStragglerHoweverMuchTheyDiffer) {
    EXPECT_EQ(test::foundIn(playSameShapes(1.4, 1.4)), "RS301[5]");
    EXPECT_EQ(test::foundIn(playSameShapes(1.6, 1.2)), "RS301[5]")
        << "arithmetic loses more to a lower clock than memory";
}

TEST(UnevenWork, EqualWorkIsNone) {
    EXPECT_EQ(test::foundIn(test::playHosted(test::HostedJob()).analyze()), "");
}

TEST(UnevenWork, AHeavyPipelineStageIsNotComparedWithOthers) {
    test::PipelineJob job;
    job.ranks = 8;
    job.heavy = {{1, 1.5}};
    EXPECT_EQ(test::findingOf(test::playPipeline(job).analyze(), "RS304"), nullptr);
}

TEST(UnevenWork, JustUnderTheThresholdIsNone) {
    test::HostedJob job;
    job.extraWork = {{-1, {5, 0.03}}};
    EXPECT_EQ(test::foundIn(test::playHosted(job).analyze()), "");
}

}  // namespace
}  // namespace rankscope::diagnose
