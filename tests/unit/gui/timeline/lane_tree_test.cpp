// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/lane_tree.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

// Two hosts of two ranks; every rank has a compute and a communication stream.
LaneTree fourRanks() {
    LaneTree tree;
    RunOutline outline;
    outline.hosts = {{0, "alpha"}, {1, "beta"}};
    for (int32_t rank = 0; rank < 4; ++rank) outline.ranks.push_back({rank, rank / 2, "rank " + std::to_string(rank)});
    tree.setOutline(outline);
    for (int32_t rank = 0; rank < 4; ++rank) {
        auto tracks = std::make_shared<RankTracks>();
        tracks->rank = rank;
        tracks->lanes = {{LaneKind::stream, "stream 7 compute", {}}, {LaneKind::stream, "stream 13 communication", {}}};
        tree.setTracks(tracks);
    }
    return tree;
}

std::vector<std::string> labels(const std::vector<Row>& rows) {
    std::vector<std::string> labels;
    for (const Row& row : rows) labels.push_back(row.label);
    return labels;
}

using Labels = std::vector<std::string>;

TEST(LaneTree, ShowsHostsAndTheirRanksCollapsedAtFirst) {
    EXPECT_EQ(labels(fourRanks().rows()), (Labels{"alpha", "rank 0", "rank 1", "beta", "rank 2", "rank 3"}));
}

TEST(LaneTree, ExpandsARankToItsLanes) {
    LaneTree tree = fourRanks();
    tree.toggleHost(1);
    tree.toggleRank(1);
    EXPECT_EQ(labels(tree.rows()),
              (Labels{"alpha", "rank 0", "rank 1", "stream 7 compute", "stream 13 communication", "beta"}));
    ASSERT_NE(LaneTree::rowOf(tree.rows(), 1, 1), nullptr);
    EXPECT_EQ(LaneTree::rowOf(tree.rows(), 1, 1)->label, "stream 13 communication");
}

TEST(LaneTree, RowsLieBelowEachOther) {
    LaneTree tree = fourRanks();
    tree.setAllExpanded(true);
    int bottom = 0;
    for (const Row& row : tree.rows()) {
        EXPECT_EQ(row.top, bottom);
        bottom += row.height;
        EXPECT_EQ(LaneTree::rowAt(tree.rows(), row.top), &row);
        EXPECT_EQ(LaneTree::rowAt(tree.rows(), bottom - 1), &row);
    }
    EXPECT_EQ(tree.height(), bottom);
    EXPECT_EQ(LaneTree::rowAt(tree.rows(), bottom), nullptr);
    EXPECT_EQ(LaneTree::rowAt(tree.rows(), -1), nullptr);
}

TEST(LaneTree, FilterNamesRanksHostsOrLanes) {
    LaneTree tree = fourRanks();
    tree.setFilter("BETA");
    EXPECT_EQ(labels(tree.rows()), (Labels{"beta", "rank 2", "rank 3"}));
    tree.setFilter("rank 1");
    EXPECT_EQ(labels(tree.rows()), (Labels{"alpha", "rank 1"}));
    tree.toggleRank(1);
    tree.setFilter("comm");
    EXPECT_EQ(labels(tree.rows()),
              (Labels{"alpha", "rank 0", "rank 1", "stream 13 communication", "beta", "rank 2", "rank 3"}));
    tree.setFilter("nothing like it");
    EXPECT_TRUE(tree.rows().empty());
}

TEST(LaneTree, PinnedRanksStayAboveInTheOrderPinned) {
    LaneTree tree = fourRanks();
    tree.togglePin(3);
    tree.togglePin(0);
    EXPECT_EQ(labels(tree.pinnedRows()), (Labels{"rank 3", "rank 0"}));
    tree.togglePin(3);
    EXPECT_EQ(labels(tree.pinnedRows()), (Labels{"rank 0"}));
}

TEST(LaneTree, ExcerptsStayAboveWhateverIsHiddenAndAreNoChoice) {
    LaneTree tree = fourRanks();
    tree.togglePin(0);
    tree.togglePin(3);
    tree.hideRank(3);
    const LaneChoices chosen = tree.choices();
    tree.setExcerpts({{3, {1}}, {1, {0, 7}}});
    EXPECT_EQ(labels(tree.pinnedRows()),
              (Labels{"rank 3", "stream 13 communication", "rank 1", "stream 7 compute", "rank 0"}));
    EXPECT_EQ(tree.choices(), chosen);
    EXPECT_EQ(labels(tree.rows()), (Labels{"alpha", "rank 0", "rank 1", "beta", "rank 2"}));
    tree.setExcerpts({});
    EXPECT_EQ(labels(tree.pinnedRows()), (Labels{"rank 0", "rank 3"}));
}

TEST(LaneTree, HiddenRanksComeBackWhenSomethingOfThemIsShown) {
    LaneTree tree = fourRanks();
    tree.hideRank(2);
    tree.hideRank(3);
    EXPECT_EQ(labels(tree.rows()), (Labels{"alpha", "rank 0", "rank 1"}));
    tree.setFilter("alpha");
    tree.expandRank(3);
    EXPECT_NE(LaneTree::rowOf(tree.rows(), 3, 0), nullptr);
}

TEST(LaneTree, MovedRanksKeepTheirPlace) {
    LaneTree tree = fourRanks();
    tree.moveRank(1, 0);
    EXPECT_EQ(labels(tree.rows()), (Labels{"alpha", "rank 1", "rank 0", "beta", "rank 2", "rank 3"}));
    tree.moveRank(1, -1);
    EXPECT_EQ(labels(tree.rows()), (Labels{"alpha", "rank 0", "rank 1", "beta", "rank 2", "rank 3"}));
}

}  // namespace
}  // namespace rankscope::gui
