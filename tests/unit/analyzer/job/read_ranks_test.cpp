// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/read_ranks.h"

#include <gtest/gtest.h>

#include <future>

namespace rankscope::job {
namespace {

void putRank(int rank, ReadRanks& ranks) {
    ranks.put(rank, replay::RankTasks{.rank = rank});
    ranks.put(facts::RankSummary{.rank = rank});
}

TEST(ReadRanks, WhoTakesARankWaitsUntilItIsRead) {
    ReadRanks ranks;
    std::future<std::optional<ReadRank>> taken = std::async(std::launch::async, [&] { return ranks.take(3); });
    putRank(2, ranks);
    putRank(3, ranks);
    const std::optional<ReadRank> rank = taken.get();
    ASSERT_TRUE(rank);
    EXPECT_EQ(rank->summary.rank, 3);
    EXPECT_EQ(rank->tasks.rank, 3);
}

TEST(ReadRanks, TheyAreTakenInAnyOrder) {
    ReadRanks ranks;
    for (int rank : {5, 1, 3}) putRank(rank, ranks);
    ranks.end();
    for (int rank : {1, 3, 5}) EXPECT_EQ(ranks.take(rank).value().summary.rank, rank);
}

TEST(ReadRanks, WhatDoesNotComeIsNothingWhenTheOthersAreRead) {
    ReadRanks ranks;
    std::future<std::optional<ReadRank>> taken = std::async(std::launch::async, [&] { return ranks.take(7); });
    putRank(6, ranks);
    ranks.put(7, replay::RankTasks{.rank = 7});  // and then its summary fails
    ranks.end();
    EXPECT_FALSE(taken.get());
    EXPECT_TRUE(ranks.take(6));
}

}  // namespace
}  // namespace rankscope::job
