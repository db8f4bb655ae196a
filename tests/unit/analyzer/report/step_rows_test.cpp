// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/step_rows.h"

#include <gtest/gtest.h>

namespace rankscope::report {
namespace {

// Rank 1 comes almost a step later to all steps: what the job takes from step to step is no more for that.
TEST(StepRows, AStepIsAsLongAsOnTheRankThatTakesLongest) {
    facts::TraceFacts facts;
    facts.ranks.resize(2);
    for (int step = 0; step < 3; ++step) {
        facts.ranks[0].steps.push_back({step, step * 100, 100, step == 0});
        facts.ranks[1].steps.push_back({step, step * 100 + 90, step == 1 ? 104 : 96, step == 0});
    }
    const std::vector<StepRow> rows = stepRows(facts);
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_TRUE(rows[0].warmUp);
    EXPECT_EQ(rows[1].index, 1);
    EXPECT_FALSE(rows[1].warmUp);
    EXPECT_EQ(rows[1].startNs, 100);
    EXPECT_EQ(rows[1].endNs, 294);
    EXPECT_EQ(rows[1].durNs, 104);
    EXPECT_EQ(rows[2].durNs, 100);
    facts.wholeRunIsOneStep = true;
    EXPECT_TRUE(stepRows(facts).empty());
}

}  // namespace
}  // namespace rankscope::report
