// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rankscope::diagnose
