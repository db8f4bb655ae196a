// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "reference/workloads/expert_routing.h"

namespace rankscope::reference {
namespace {

using Dimension = RankSet (Layout::*)() const;

/// Ranks of each set of a dimension, ordered by their place in it.
std::map<int, std::map<int, int>> setsOf(const Parallel& parallel, Dimension dimension) {
    std::map<int, std::map<int, int>> sets;
    for (int rank = 0; rank < parallel.dp * parallel.tp * parallel.pp; ++rank) {
        const RankSet set = (Layout(parallel, rank).*dimension)();
        EXPECT_TRUE(sets[set.colour].emplace(set.rank, rank).second) << "two ranks in one place";
    }
    return sets;
}

std::vector<int> members(const Parallel& parallel, Dimension dimension, int rank) {
    std::vector<int> result;
    const auto sets = setsOf(parallel, dimension);
    for (const auto& [place, member] : sets.at((Layout(parallel, rank).*dimension)().colour)) result.push_back(member);
    return result;
}

const Parallel kJob{.dp = 4, .tp = 2, .pp = 2, .ep = 2};

TEST(Layout, TensorRanksFarFromEachOtherAreInDifferentNodesAndTheOtherGroupsStayDisjoint) {
    Parallel apart = kJob;
    apart.tensorOutermost = true;
    EXPECT_EQ(members(apart, &Layout::tensor, 3), (std::vector<int>{3, 11}));
    EXPECT_EQ(members(apart, &Layout::data, 3), (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(members(apart, &Layout::pipeline, 3), (std::vector<int>{3, 7}));
    for (const Dimension dimension :
         {&Layout::tensor, &Layout::data, &Layout::pipeline, &Layout::expert, &Layout::expertData})
        setsOf(apart, dimension);
}

TEST(Layout, RanksAreOrderedAsInMegatron) {
    // The example of megatron/core/parallel_state.py, with 16 ranks: tensor groups are neighbours, pipeline groups are
    // furthest apart.
    EXPECT_EQ(members(kJob, &Layout::tensor, 5), (std::vector<int>{4, 5}));
    EXPECT_EQ(members(kJob, &Layout::data, 5), (std::vector<int>{1, 3, 5, 7}));
    EXPECT_EQ(members(kJob, &Layout::pipeline, 5), (std::vector<int>{5, 13}));
    EXPECT_EQ(members(kJob, &Layout::expert, 5), (std::vector<int>{5, 7}));
    EXPECT_EQ(members(kJob, &Layout::expertData, 5), (std::vector<int>{1, 5}));
}

TEST(Layout, EveryDimensionCutsTheJobIntoEqualSets) {
    for (const auto& [dimension, size] : {std::pair<Dimension, size_t>(&Layout::tensor, 2),
                                          {&Layout::data, 4},
                                          {&Layout::pipeline, 2},
                                          {&Layout::expert, 2},
                                          {&Layout::expertData, 2}}) {
        std::set<int> seen;
        for (const auto& [colour, set] : setsOf(kJob, dimension)) {
            EXPECT_EQ(set.size(), size);
            for (const auto& [place, rank] : set) seen.insert(rank);
        }
        EXPECT_EQ(seen.size(), 16u);
    }
}

TEST(ExpertRouting, BalancedSharesDifferByOneTokenAtMost) {
    EXPECT_EQ(routeTokens(8, 4), (std::vector<int64_t>{2, 2, 2, 2}));
    EXPECT_EQ(routeTokens(10, 4), (std::vector<int64_t>{2, 3, 2, 3}));
}

TEST(ExpertRouting, ASkewedExpertGetsItsFactorTimesTheMeanAndNoTokenIsLost) {
    EXPECT_EQ(routeTokens(100, 4, {2, 1}), (std::vector<int64_t>{16, 50, 17, 17}));
    EXPECT_EQ(routeTokens(100, 4, {9, 0}), (std::vector<int64_t>{100, 0, 0, 0}));
    EXPECT_EQ(tokensPerRank({16, 50, 17, 17}, 2), (std::vector<int64_t>{66, 34}));
}

}  // namespace
}  // namespace rankscope::reference
