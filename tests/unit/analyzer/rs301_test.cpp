// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::analyzer::test {
namespace {

TEST(Stragglers, SavingsOfTwoAddUpToWhatRepairingBothGains) {
    DdpJob slow;
    slow.noise = 0;
    slow.slow = {{1, 1.4}, {6, 1.2}};
    DdpJob balanced = slow;
    balanced.slow = {};
    const Report report = playDdp(slow).analyze();
    ASSERT_EQ(foundIn(report), "RS301[1] RS301[6]");
    const double measured = report.run.stepNs - playDdp(balanced).analyze().run.stepNs;
    EXPECT_NEAR(*report.findings[0].savingNsPerStep + *report.findings[1].savingNsPerStep, measured,
                0.03 * report.run.stepNs);
    EXPECT_GT(*report.findings[0].savingNsPerStep, *report.findings[1].savingNsPerStep);
}

TEST(Stragglers, ASlowHostKeepsItsRanksTime) {
    DdpJob job;
    for (int rank : {4, 5, 6, 7}) job.slow[rank] = 1.3;
    job.slow[1] = 1.5;
    const Report report = playDdp(job).analyze();
    int ofTheHost = 0;
    for (const Finding& f : report.findings)
        if (f.id == "RS301") ofTheHost += f.ranks.front() >= 4;
    EXPECT_EQ(ofTheHost, 0) << foundIn(report);
}

}  // namespace
}  // namespace rankscope::analyzer::test
