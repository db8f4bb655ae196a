// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/hosted_job.h"

namespace rankscope::diagnose {
namespace {

TEST(StragglerNode, AllRanksOfASlowHostAreOneFinding) {
    test::DdpJob job;
    for (int rank : {4, 5, 6, 7}) job.slow[rank] = 1.4;
    test::DdpJob balanced = job;
    balanced.slow.clear();
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS302[4 5 6 7]");
    EXPECT_NE(report.findings[0].cause.find("node1"), std::string::npos) << report.findings[0].cause;
    EXPECT_NEAR(report.findings[0].worthNs(), report.run.stepNs - test::playDdp(balanced).analyze().run.stepNs,
                0.03 * report.run.stepNs);
}

TEST(StragglerNode, OfThreeHostsTheSlowOneIsNamed) {
    test::FsdpJob job;
    job.ranks = 12;
    for (int rank : {0, 1, 2, 3}) job.slow[rank] = 1.3;
    EXPECT_EQ(test::foundIn(test::playFsdp(job).analyze()), "RS302[0 1 2 3]");
}

TEST(StragglerNode, AHostThatBecomesSlowHalfwayIsToldWithTheStep) {
    test::DdpJob job;
    job.steps = 13;
    job.slowFrom = 7;
    for (int rank : {4, 5, 6, 7}) job.slow[rank] = 1.4;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS302[4 5 6 7]");
    EXPECT_NE(report.findings[0].cause.find("(1.00x before step 7)"), std::string::npos) << report.findings[0].cause;
    EXPECT_EQ(report.findings[0].steps, (std::vector<int>{7, 8, 9, 10, 11, 12}));
}

TEST(StragglerNode, OneSlowRankOfAHostIsAStraggler) {
    test::DdpJob job;
    job.slow = {{5, 1.4}};
    EXPECT_EQ(test::foundIn(test::playDdp(job).analyze()), "RS301[5]");
}

TEST(StragglerNode, WithOneRankPerHostAStragglerMayBeItsHost) {
    test::DdpJob job;
    job.slow = {{5, 1.4}};
    EXPECT_EQ(test::playDdp(job).analyze().findings[0].cause.find("device or host"), std::string::npos);
    job.ranksPerHost = 1;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[5]");
    EXPECT_NE(report.findings[0].cause.find("it is the only rank on node5: device or host, nothing tells which"),
              std::string::npos)
        << report.findings[0].cause;
    EXPECT_NE(report.findings[0].fix.back().find("RS302"), std::string::npos);
}

TEST(StragglerNode, JustUnderTheFloorIsANote) {
    test::DdpJob job;
    job.noise = 0.002;
    for (int rank : {4, 5, 6, 7}) job.slow[rank] = 1.031;
    const report::Report report = test::playDdp(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(test::notedIn(report), "RS302");
}

}  // namespace
}  // namespace rankscope::diagnose
