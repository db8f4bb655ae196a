// SPDX-License-Identifier: Apache-2.0
// What the compare suite asks of a comparer, also of one that says nothing.
#include "reference/score/compare_score.h"

#include <gtest/gtest.h>

namespace rankscope::score {
namespace {

PairTally tally(int above, int found) {
    PairTally result;
    result.pairs = result.covered = 100;
    result.above = above;
    result.foundAbove = found;
    result.verdicts = {{"regression", found}, {"no change", 100 - found}};
    return result;
}

/// Right about everything: 95 of 100 pairs are above what was said to be visible.
CompareScoreboard good() {
    CompareScoreboard board;
    board.same = tally(0, 2);
    board.slowdowns = {{0.01, 1.01, tally(0, 0)}, {0.1, 1.1, tally(95, 94)}};
    board.causes = {{"ddp-straggler", {"straggler"}, {}, 19, 1, 19, {{"straggler", 19}}}};
    return board;
}

bool names(const std::vector<std::string>& reasons, const std::string& part) {
    return reasons.size() == 1 && reasons[0].find(part) != std::string::npos;
}

TEST(CompareRequirement, IsMetByWhoIsRight) {
    EXPECT_TRUE(unmet(good(), {}).empty());
}

TEST(CompareRequirement, WhoPromisesNothingIsNotJudgedAsRight) {
    CompareScoreboard board = good();
    board.slowdowns = {{0.01, 1.01, tally(0, 0)}, {0.1, 1.1, tally(0, 0)}};
    EXPECT_TRUE(names(unmet(board, {}), "above the printed smallest visible change"));
}

TEST(CompareRequirement, WhoClaimsNothingIsNotJudgedAsRight) {
    CompareScoreboard board = good();
    board.causes = {{"ddp-straggler", {"straggler"}, {}, 0, 20, 0, {}}};
    EXPECT_TRUE(names(unmet(board, {}), "planted cause"));
}

TEST(CompareRequirement, PartsThatWereNotAskedForAreNotMissed) {
    CompareScoreboard board = good();
    board.causes.clear();
    EXPECT_TRUE(unmet(board, {}).empty());
    board = good();
    board.slowdowns.clear();
    EXPECT_TRUE(unmet(board, {}).empty());
}

TEST(CompareRequirement, EachShareIsAsked) {
    CompareScoreboard board = good();
    board.same = tally(0, 6);
    EXPECT_TRUE(names(unmet(board, {}), "false regressions"));
    board = good();
    board.slowdowns[1].tally.foundAbove = 80;
    EXPECT_TRUE(names(unmet(board, {}), "found above"));
    board = good();
    board.slowdowns[0].tally.covered = 80;
    EXPECT_TRUE(names(unmet(board, {}), "inside the interval"));
    board = good();
    board.causes[0].right = 17;
    EXPECT_TRUE(names(unmet(board, {}), "first causes"));
}

}  // namespace
}  // namespace rankscope::score
