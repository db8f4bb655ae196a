// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/report/sentences.h"

namespace rankscope::report {
namespace {

TEST(LossText, NamesARankOnce) {
    EXPECT_EQ(lossText({"ring_full", "warning", 7, "records did not fit", 2}), "rank 2: records did not fit (7 x)");
    EXPECT_EQ(lossText({"died", "error", 1, "rank 3 vanished", 3}), "rank 3 vanished");
    EXPECT_EQ(lossText({"unmatched_collective", "warning", 1, "calls disagree", std::nullopt}), "calls disagree");
}

TEST(LossText, WhatHappenedAlikeOnSeveralRanksIsOneLine) {
    const std::vector<LossLine> lines =
        lossLines({{"died", "error", 1, "rank 1 vanished", 1},
                   {"torn_tail", "warning", 1, "the last 7 records are torn", 0},
                   {"died", "error", 1, "rank 3 vanished", 3},
                   {"torn_tail", "warning", 4, "the last 9 records are torn", 2},
                   {"ring_full", "warning", 2, "records did not fit", 2},
                   {"bad_run_json", "warning", 1, "run.json is damaged", std::nullopt}});
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0].text, "ranks 1, 3: vanished");
    EXPECT_EQ(lines[0].severity, "error");
    EXPECT_EQ(lines[1].text, "ranks 0, 2: the last 7 records are torn (so on rank 0, the others alike) (5 x in all)");
    EXPECT_EQ(lines[2].text, "rank 2: records did not fit (2 x)");
    EXPECT_EQ(lines[3].text, "run.json is damaged");
}

TEST(LossText, TheFirstDeathStandsFirstAndErrorsBeforeTheRest) {
    std::vector<LossRow> losses{{"untimed_event", "info", 1, "c", {}},
                                {"torn_tail", "warning", 1, "b", {}},
                                {"died", "error", 1, "a", 0},
                                {"first_death", "error", 4, "z", 2}};
    orderLosses(losses);
    EXPECT_EQ(losses[0].kind, "first_death");
    EXPECT_EQ(losses[1].kind, "died");
    EXPECT_EQ(losses[2].kind, "torn_tail");
    EXPECT_EQ(losses[3].kind, "untimed_event");
}

}  // namespace
}  // namespace rankscope::report
