// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/loss_text.h"

#include <gtest/gtest.h>

namespace rankscope::analyzer {
namespace {

TEST(LossText, NamesARankOnce) {
    EXPECT_EQ(lossText({"ring_full", "warning", 7, "records did not fit", 2}), "rank 2: records did not fit (7 x)");
    EXPECT_EQ(lossText({"died", "error", 1, "rank 3 vanished", 3}), "rank 3 vanished");
    EXPECT_EQ(lossText({"unmatched_collective", "warning", 1, "calls disagree", std::nullopt}), "calls disagree");
}

TEST(LossText, TheFirstDeathStandsFirstAndErrorsBeforeTheRest) {
    std::vector<LossRow> losses{{"untimed_event", "info", 1, "c", {}}, {"torn_tail", "warning", 1, "b", {}}, {"died", "error", 1, "a", 0}, {"first_death", "error", 4, "z", 2}};
    orderLosses(losses);
    EXPECT_EQ(losses[0].kind, "first_death");
    EXPECT_EQ(losses[1].kind, "died");
    EXPECT_EQ(losses[2].kind, "torn_tail");
    EXPECT_EQ(losses[3].kind, "untimed_event");
}

}  // namespace
}  // namespace rankscope::analyzer
