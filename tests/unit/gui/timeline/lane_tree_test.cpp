// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/lane_tree.h"

#include <gtest/gtest.h>

#include "gui/timeline/rank_order.h"

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
    tree.toggleGroup(1);
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

TEST(LaneTree, GroupsRanksByTheirPlaceInTheGrid) {
    LaneTree tree = fourRanks();
    RunOutline outline = tree.outline();
    for (OutlineRank& rank : outline.ranks) rank.places = {{"tp", rank.rank % 2}};
    outline.ranks.push_back({4, 1, "rank 4", {}});
    tree.setOutline(outline);
    EXPECT_EQ(tree.directions(), (std::vector<std::string>{"tp"}));
    tree.toggleGroup(1);
    tree.setGrouping("tp");
    EXPECT_EQ(labels(tree.rows()),
              (Labels{"without a place in tp", "rank 4", "tp 0", "rank 0", "rank 2", "tp 1", "rank 1", "rank 3"}));
    tree.toggleGroup(0);
    EXPECT_EQ(labels(tree.rows()), (Labels{"without a place in tp", "rank 4", "tp 0", "tp 1", "rank 1", "rank 3"}));
    EXPECT_EQ(tree.ranksOf(0), (std::vector<int32_t>{0, 2})) << "its line stands for those that are not shown";
    tree.expandRank(2);
    EXPECT_EQ(tree.choices().collapsedGroups, std::set<int64_t>{});
    tree.setGrouping(LaneChoices::kByNothing);
    EXPECT_EQ(labels(tree.rows()).front(), "rank 0");
    EXPECT_EQ(tree.rows().size(), 5u);
}

TEST(LaneTree, LowLinesBringAThousandRanksIntoSight) {
    LaneTree tree;
    RunOutline outline;
    outline.hosts = {{0, "alpha"}};
    for (int32_t rank = 0; rank < 1'000; ++rank) outline.ranks.push_back({rank, 0, "rank " + std::to_string(rank), {}});
    tree.setOutline(outline);
    const int before = tree.height();
    tree.setCompact(true);
    EXPECT_LT(tree.height(), 1'080);
    EXPECT_GT(before, 20 * tree.height());
    auto tracks = std::make_shared<RankTracks>();
    tracks->rank = 7;
    tracks->lanes = {{LaneKind::stream, "stream 7 compute", {}}};
    tree.setTracks(tracks);
    tree.toggleRank(7);
    EXPECT_GT(LaneTree::summaryRow(tree.rows(), 7)->height, LaneTree::summaryRow(tree.rows(), 8)->height);
}

TEST(LaneTree, OfLowLinesOnManyHostsTheRulesBetweenHostsTakeLessRoomThanTheRanks) {
    LaneTree tree;
    RunOutline outline;
    for (int host = 0; host < 256; ++host) outline.hosts.push_back({host, "node" + std::to_string(host)});
    for (int32_t rank = 0; rank < 1'024; ++rank)
        outline.ranks.push_back({rank, rank / 4, "rank " + std::to_string(rank), {}});
    tree.setOutline(outline);
    tree.setCompact(true);
    int rules = 0, ranks = 0;
    for (const Row& row : tree.rows()) (row.kind == RowKind::group ? rules : ranks) += row.height;
    EXPECT_GT(rules, 0);
    EXPECT_LE(4 * rules, ranks);
}

// A rank whose device waits for `share` of the first 1000 ns, and computes for the rest.
RankTracksPtr waitingRank(int32_t rank, int64_t waits) {
    auto tracks = std::make_shared<RankTracks>();
    tracks->rank = rank;
    Lane lane{LaneKind::stream, "stream 7", {}, {}};
    Track kernels(1);
    kernels.add({0, waits, 0, 0, EventKind::communication, waits});
    kernels.add({waits, 1'000 - waits, 0, 1, EventKind::compute});
    kernels.finish();
    lane.parts.push_back({EventTable::kernel, std::move(kernels)});
    tracks->lanes.push_back(std::move(lane));
    tracks->activity = ActivityBins(tracks->deviceTracks(), {0, 1'000});
    return tracks;
}

TEST(RankOrder, WhatTheAnalysisLeftCountsUntilTheEventsAreLoaded) {
    RunOutline outline;
    outline.hosts = {{0, "alpha"}};
    for (int32_t rank = 0; rank < 3; ++rank) outline.ranks.push_back({rank, 0, "rank " + std::to_string(rank), {}});
    std::vector<std::array<uint8_t, kActivities>> shares(2);  // rank 2 waits in the second half
    shares[1][static_cast<size_t>(Activity::waiting)] = 255;
    LaneTree tree;
    tree.setOutline(outline, {{2, ActivityBins(0, 500, shares)}});
    tree.setTracks(waitingRank(0, 500));
    EXPECT_EQ(ranksByWaiting(tree, {0, 500}), (std::vector<int32_t>{2, 0, 1})) << "of rank 1 nothing is known";
    EXPECT_EQ(ranksByWaiting(tree, {500, 1'000}), (std::vector<int32_t>{0, 2, 1}));
    EXPECT_EQ(tree.activity(2).bins->binNs(), 500);
    EXPECT_TRUE(tree.activity(2).streams.empty());
    EXPECT_EQ(tree.activity(1).bins, nullptr);
    const RankTracksPtr loaded = waitingRank(2, 100);
    tree.setTracks(loaded);
    EXPECT_EQ(tree.activity(2).bins, &loaded->activity);
    tree.setOutline(outline);
    EXPECT_EQ(tree.activity(2).bins, nullptr) << "another run";
}

TEST(RankOrder, WhomTheOthersWaitForIsOnTop) {
    LaneTree tree;
    RunOutline outline;
    outline.hosts = {{0, "alpha"}};
    for (int32_t rank = 0; rank < 4; ++rank) outline.ranks.push_back({rank, 0, "rank " + std::to_string(rank), {}});
    tree.setOutline(outline);
    tree.setTracks(waitingRank(0, 800));
    tree.setTracks(waitingRank(1, 900));
    tree.setTracks(waitingRank(3, 100));
    EXPECT_EQ(ranksByWaiting(tree, {0, 1'000}), (std::vector<int32_t>{3, 0, 1, 2})) << "rank 2 is not loaded";
    EXPECT_EQ(ranksByWaiting(tree, {0, 40}), (std::vector<int32_t>{0, 1, 3, 2})) << "all of them wait there";
    tree.setOrder(ranksByWaiting(tree, {0, 1'000}));
    EXPECT_EQ(labels(tree.rows()), (Labels{"alpha", "rank 3", "rank 0", "rank 1", "rank 2"}));
}

}  // namespace
}  // namespace rankscope::gui
