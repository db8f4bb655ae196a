// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/shared_list.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/analyzer/small_job.h"

namespace rankscope::facts {
namespace {

TEST(SharedList, CopiesShareWhatTheyHoldUntilOneIsChanged) {
    SharedList<int> list = std::vector<int>{1, 2, 3};
    SharedList<int> copy = list;
    EXPECT_EQ(copy.data(), list.data());
    copy.own(1) = 20;
    EXPECT_NE(copy.data(), list.data());
    EXPECT_EQ(list.values(), (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(copy.values(), (std::vector<int>{1, 20, 3}));
    EXPECT_EQ(copy.data(), copy.values().data());
}

TEST(SharedList, WhoHoldsItAloneChangesItInPlace) {
    std::optional<SharedList<int>> first = SharedList<int>(std::vector<int>{1, 2});
    SharedList<int> list = *first;
    first.reset();
    const int* const before = list.data();
    list.own(0) = 10;
    list.own(1) = 20;
    EXPECT_EQ(list.data(), before);
    EXPECT_EQ(list.values(), (std::vector<int>{10, 20}));
}

TEST(SharedList, AChangeOfAllLeavesTheCopiesAsTheyAre) {
    SharedList<int> list = std::vector<int>{3, 1, 2};
    const SharedList<int> copy = list;
    {
        const auto values = list.change();
        values->push_back(0);
        for (int& value : *values) value *= 10;
    }
    list.push_back(5);
    EXPECT_EQ(list.values(), (std::vector<int>{30, 10, 20, 0, 5}));
    EXPECT_EQ(list.size(), 5u);
    EXPECT_EQ(list.data(), list.values().data());
    EXPECT_EQ(copy.values(), (std::vector<int>{3, 1, 2}));
    SharedList<int> none;
    none.change()->resize(2);
    EXPECT_EQ(none.size(), 2u);
}

TEST(SharedList, WhatWasMovedAwayIsEmpty) {
    SharedList<int> from = std::vector<int>{1, 2};
    SharedList<int> to = std::move(from);
    EXPECT_EQ(to.values(), (std::vector<int>{1, 2}));
    EXPECT_TRUE(from.empty());
    EXPECT_EQ(from.begin(), from.end());
    from = std::move(to);
    EXPECT_TRUE(to.empty());
    EXPECT_EQ(from.size(), 2u);
}

TEST(SharedList, WithoutValuesItIsEmpty) {
    const SharedList<int> list;
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.begin(), list.end());
    EXPECT_TRUE(list.values().empty());
}

/// Of a graph a change of times copies the times alone, and the graph that it was made of stays as it was.
TEST(SharedList, ACopyOfAGraphSharesAllButItsTimes) {
    const replay::TaskGraph graph = test::SmallJob().analysis().replay.graph;
    replay::TaskGraph copy = graph;
    copy.durationNs[0] += 1;
    EXPECT_EQ(copy.before.data(), graph.before.data());
    EXPECT_EQ(copy.firstEdge.data(), graph.firstEdge.data());
    EXPECT_EQ(copy.members.data(), graph.members.data());
    EXPECT_EQ(copy.exchanges.data(), graph.exchanges.data());
    EXPECT_EQ(copy.edges.data(), graph.edges.data());
    EXPECT_EQ(copy.info.data(), graph.info.data());
    copy.exchanges.own(0).bytes += 1;
    EXPECT_EQ(copy.exchanges[0].bytes, graph.exchanges[0].bytes + 1);
}

}  // namespace
}  // namespace rankscope::facts
