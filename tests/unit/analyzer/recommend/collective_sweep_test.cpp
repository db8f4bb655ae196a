// SPDX-License-Identifier: Apache-2.0
// What a sweep over algorithms and protocols says, from times made up in sight.
#include "analyzer/recommend/collective_sweep.h"

#include <gtest/gtest.h>

#include <set>

namespace rankscope::recommend {
namespace {

constexpr costs::AlgorithmChoice kRing{store::Algorithm::ring, store::Protocol::simple},
    kTree{store::Algorithm::tree, store::Protocol::ll};
constexpr int64_t kMega = 1 << 20;

SweptCollective allReduce(int64_t bytes, int nodes = 2) {
    return {store::Op::allReduce, nodes, 16, bytes};
}

TEST(CollectiveSweep, WhatIsFasterBeyondItsNoiseIsChosen) {
    SweptTimes standard, all;
    standard[allReduce(1 * kMega)][kRing] = {100, 101, 99, 100};
    standard[allReduce(2 * kMega)][kRing] = {200, 205, 195, 200};
    standard[allReduce(4 * kMega)][kRing] = {400, 410, 390, 400};
    all = standard;
    all[allReduce(1 * kMega)][kTree] = {50, 51, 49, 50};
    all[allReduce(2 * kMega)][kTree] = {150, 300, 160, 300};  // its median is above
    all[allReduce(4 * kMega)][kTree] = {399, 398, 397, 396};  // too little
    const auto choices = chooseFromSweep(standard, all, 0.02);
    ASSERT_EQ(choices.size(), 3u);
    EXPECT_TRUE(choices[0].better);
    EXPECT_EQ(choices[0].best, kTree);
    EXPECT_DOUBLE_EQ(choices[0].bestNs, 50);
    EXPECT_FALSE(choices[1].better);
    EXPECT_FALSE(choices[2].better);
}

TEST(CollectiveSweep, TimesThatOverlapTheDefaultsDoNotCount) {
    SweptTimes standard, all;
    standard[allReduce(kMega)][kRing] = {80, 90, 110, 120};
    all = standard;
    all[allReduce(kMega)][kTree] = {70, 85, 95, 118};
    EXPECT_FALSE(chooseFromSweep(standard, all, 0.02).at(0).better);
}

SweepChoice choice(const SweptCollective& what, costs::AlgorithmChoice best, bool better) {
    return {what, kRing, better ? best : kRing, 100, better ? 50.0 : 100.0, better};
}

std::vector<std::string> lines(const std::vector<SweepChoice>& choices) {
    std::vector<std::string> text;
    std::string file;
    for (const TunerRow& row : rowsFromSweep(choices)) {
        text.push_back(formatTunerRow(row));
        file += text.back() + "\n";
    }
    if (!file.empty()) {
        EXPECT_TRUE(parseTunerCsv(file).problems.empty()) << file;
    }
    return text;
}

TEST(CollectiveSweep, RowsReachHalfWayToTheNextSizeAndNotBeyondTheLast) {
    EXPECT_EQ(lines({choice(allReduce(100), kTree, true), choice(allReduce(400), kTree, false),
                     choice(allReduce(1600), kTree, true)}),
              (std::vector<std::string>{"allreduce,100,200,tree,ll,-1,2,16", "allreduce,801,1600,tree,ll,-1,2,16"}));
}

TEST(CollectiveSweep, NeighboursWithTheSameChoiceAreOneRow) {
    EXPECT_EQ(lines({choice(allReduce(100), kTree, true), choice(allReduce(400), kTree, true),
                     choice(allReduce(1600), kTree, false)}),
              (std::vector<std::string>{"allreduce,100,800,tree,ll,-1,2,16"}));
    EXPECT_EQ(lines({choice(allReduce(100), kTree, true),
                     choice(allReduce(400), {store::Algorithm::ring, store::Protocol::ll128}, true)}),
              (std::vector<std::string>{"allreduce,100,200,tree,ll,-1,2,16", "allreduce,201,400,ring,ll128,-1,2,16"}));
}

TEST(CollectiveSweep, OtherCommunicatorsAreNoNeighbours) {
    EXPECT_EQ(lines({choice(allReduce(100, 1), kTree, true), choice(allReduce(400, 2), kTree, true)}),
              (std::vector<std::string>{"allreduce,100,100,tree,ll,-1,1,16", "allreduce,400,400,tree,ll,-1,2,16"}));
    EXPECT_TRUE(lines({choice(allReduce(100), kTree, false)}).empty());
}

TEST(CollectiveSweep, EverySettingHoldsRowsThatExist) {
    std::set<std::string> names;
    for (const SweepSetting& setting : sweepSettings()) {
        names.insert(setting.name);
        std::string file;
        for (const TunerRow& row : setting.rows) file += formatTunerRow(row) + "\n";
        EXPECT_TRUE(parseTunerCsv(file).problems.empty()) << file;
    }
    EXPECT_EQ(names, (std::set<std::string>{"ring-ll", "ring-ll128", "ring-simple", "tree-ll", "tree-ll128",
                                            "tree-simple", "nvls-simple", "nvls_tree-simple", "pat-simple"}));
}

}  // namespace
}  // namespace rankscope::recommend
