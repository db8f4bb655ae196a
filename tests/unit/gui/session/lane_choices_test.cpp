// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gui/session/lane_choices_text.h"

namespace rankscope::gui {
namespace {

LaneChoices someChoices() {
    LaneChoices choices;
    choices.compact = true;
    choices.collapsedGroups = {1};
    choices.expandedRanks = {0, 3};
    choices.hiddenRanks = {2};
    choices.hiddenLanes = {"stream 7 \"copies\"", "NVTX \u00e9"};
    choices.pinnedRanks = {3, 1};
    choices.order = {3, 2, 1, 0};
    choices.filter = "node1";
    return choices;
}

TEST(LaneChoices, ComeBackAsTheyWereKept) {
    EXPECT_EQ(laneChoicesOf(textOf(someChoices())), someChoices());
    EXPECT_EQ(laneChoicesOf(textOf({})), LaneChoices{});
}

TEST(LaneChoices, AnythingElseIsNoChoice) {
    for (const char* text : {"", "[]", "{",
                             "{\"pinned_ranks\": 3, \"filter\": [], \"order\": [\"x\", 1.5], \"hidden_lanes\": {\"a\": "
                             "1}, \"later\": true}"})
        EXPECT_EQ(laneChoicesOf(text), LaneChoices{}) << text;
}

TEST(LaneChoices, RanksAndHostsThatAreGoneAreForgotten) {
    RunOutline outline;
    outline.hosts = {{0, "alpha"}};
    outline.ranks = {{0, 0, "rank 0", {}}, {1, 0, "rank 1", {}}};
    const LaneChoices known = onlyKnown(someChoices(), outline);
    EXPECT_TRUE(known.collapsedGroups.empty());
    EXPECT_EQ(known.expandedRanks, (std::set<int32_t>{0}));
    EXPECT_EQ(known.pinnedRanks, (std::vector<int32_t>{1}));
    EXPECT_EQ(known.order, (std::vector<int32_t>{1, 0}));
    EXPECT_EQ(known.filter, "node1");
    EXPECT_TRUE(known.compact);
    LaneChoices grouped = someChoices();
    grouped.grouping = "tp";
    EXPECT_EQ(onlyKnown(grouped, outline).grouping, LaneChoices::kByHost) << "nobody has a place in it";
    outline.ranks[0].places = {{"tp", 1}};
    EXPECT_EQ(onlyKnown(grouped, outline).grouping, "tp");
    EXPECT_EQ(onlyKnown(grouped, outline).collapsedGroups, (std::set<int64_t>{1}));
}

TEST(RunIdentity, IsTheRunsAndNotTheFiles) {
    EXPECT_EQ(runIdentity("run", "12", 4).size(), 16u);
    EXPECT_EQ(runIdentity("run", "12", 4), runIdentity("run", "12", 4));
    EXPECT_NE(runIdentity("run", "12", 4), runIdentity("run", "13", 4));
    EXPECT_NE(runIdentity("run", "12", 4), runIdentity("run", "12", 8));
    EXPECT_NE(runIdentity("run", "12", 4), runIdentity("other", "12", 4));
}

}  // namespace
}  // namespace rankscope::gui
