// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

/// On all 8 ranks, in the steps from `from` until `until`, of 13; the first is warm-up.
test::DdpJob slowKernels(std::map<std::string, double> kernels, int from = 7, int until = 13) {
    test::DdpJob job;
    job.steps = 13;
    job.slowKernels = std::move(kernels);
    job.slowFrom = from;
    job.slowUntil = until;
    return job;
}

TEST(SlowerKernels, AKernelThatTakesLongerOnAllRanksIsToldWithItsNameAndStep) {
    const report::Report report = test::playDdp(slowKernels({{"forward", 1.5}})).analyze();
    ASSERT_EQ(test::foundIn(report), "RS305[0 1 2 3 4 5 6 7]");
    const job::Finding& finding = report.findings[0];
    EXPECT_NE(finding.cause.find("all ranks take"), std::string::npos) << finding.cause;
    EXPECT_NE(finding.cause.find("as before step 7, in forward"), std::string::npos) << finding.cause;
    EXPECT_EQ(finding.steps, (std::vector<int>{7, 8, 9, 10, 11, 12}));
    EXPECT_FALSE(finding.savingNs);
    EXPECT_NEAR(finding.costNs, 12 * 1e6, 0.5e6) << "12 layers, 2 ms each before";
}

TEST(SlowerKernels, WhereMostKernelsAreItIsTheDevices) {
    const report::Report report =
        test::playDdp(slowKernels({{"forward", 1.2}, {"backward", 1.2}, {"adam", 1.2}})).analyze();
    ASSERT_EQ(test::foundIn(report), "RS305[0 1 2 3 4 5 6 7]");
    EXPECT_NE(report.findings[0].cause.find("as where devices become slower"), std::string::npos)
        << report.findings[0].cause;
}

TEST(SlowerKernels, OneRankWhoseDeviceBecameSlowIsAStraggler) {
    test::DdpJob job = slowKernels({});
    job.slow = {{5, 1.5}};
    EXPECT_EQ(test::foundIn(test::playDdp(job).analyze()), "RS301[5]");
}

TEST(SlowerKernels, ARankThatIsSlowAllTheTimeIsAmongThoseThatBecameSlower) {
    test::DdpJob job = slowKernels({{"forward", 1.5}});
    job.slow = {{5, 1.3}};
    job.ranksAlwaysSlow = true;
    EXPECT_EQ(test::foundIn(test::playDdp(job).analyze()), "RS301[5] RS305[0 1 2 3 4 5 6 7]");
}

TEST(SlowerKernels, UnderTheFloorAndWhereTheyRecoveredThereIsNone) {
    EXPECT_EQ(test::foundIn(test::playDdp(slowKernels({{"forward", 1.05}})).analyze()), "");
    EXPECT_EQ(test::foundIn(test::playDdp(slowKernels({{"forward", 1.5}}, 3, 9)).analyze()), "");
}

TEST(SlowerKernels, SlowFromTheBeginningOnTheyAreAsTheyAre) {
    EXPECT_EQ(test::foundIn(test::playDdp(slowKernels({{"forward", 1.5}}, 0)).analyze()), "");
}

TEST(SlowerKernels, ThreeLastStepsAreTooFew) {
    EXPECT_EQ(test::foundIn(test::playDdp(slowKernels({{"forward", 1.5}}, 9)).analyze()), "RS305[0 1 2 3 4 5 6 7]");
    const std::string found = test::foundIn(test::playDdp(slowKernels({{"forward", 1.5}}, 10)).analyze());
    EXPECT_EQ(found.find("RS305"), std::string::npos) << found;
}

}  // namespace
}  // namespace rankscope::diagnose
