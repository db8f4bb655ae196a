// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/intervals.h"

#include <gtest/gtest.h>

#include <random>

namespace rankscope::facts {
namespace {

std::vector<Interval> randomIntervals(std::mt19937& random, int count) {
    std::uniform_int_distribution<int64_t> start(0, 200), length(-2, 20);
    std::vector<Interval> result;
    for (int i = 0; i < count; ++i) {
        const int64_t s = start(random);
        result.push_back({s, s + length(random)});
    }
    return result;
}

/// The definition, point by point.
bool covers(const std::vector<Interval>& intervals, int64_t point) {
    for (const Interval& i : intervals)
        if (i.startNs <= point && point < i.endNs) return true;
    return false;
}

bool isCanonical(const IntervalSet& set) {
    for (size_t i = 0; i < set.size(); ++i) {
        if (set[i].endNs <= set[i].startNs) return false;
        if (i > 0 && set[i].startNs <= set[i - 1].endNs) return false;
    }
    return true;
}

TEST(Intervals, UnionMergesTouchingAndDropsEmpty) {
    EXPECT_EQ(unite({{5, 7}, {0, 3}, {3, 5}, {9, 9}, {12, 11}}), (IntervalSet{{0, 7}}));
    EXPECT_TRUE(unite({}).empty());
}

TEST(Intervals, SubtractCutsOneIntervalSeveralTimes) {
    EXPECT_EQ(subtract({{0, 10}, {12, 20}}, {{2, 3}, {5, 14}, {19, 30}}), (IntervalSet{{0, 2}, {3, 5}, {14, 19}}));
}

TEST(Intervals, OperationsAgreeWithTheirPointwiseDefinition) {
    std::mt19937 random(42);
    for (int round = 0; round < 300; ++round) {
        const auto rawA = randomIntervals(random, round % 17);
        const auto rawB = randomIntervals(random, round % 13);
        const IntervalSet a = unite(rawA), b = unite(rawB);
        const IntervalSet both = intersect(a, b), only = subtract(a, b);
        ASSERT_TRUE(isCanonical(a) && isCanonical(b) && isCanonical(only));
        for (int64_t point = -1; point < 230; ++point) {
            ASSERT_EQ(covers(a, point), covers(rawA, point));
            ASSERT_EQ(covers(both, point), covers(rawA, point) && covers(rawB, point));
            ASSERT_EQ(covers(only, point), covers(rawA, point) && !covers(rawB, point));
        }
        ASSERT_EQ(length(both) + length(only), length(a));
    }
}

TEST(Intervals, CoveredLengthAnswersForAnyWindow) {
    std::mt19937 random(7);
    const IntervalSet set = unite(randomIntervals(random, 12));
    const CoveredLength covered(set);
    for (int64_t from = -3; from < 230; from += 3)
        for (int64_t to = from; to < 230; to += 5)
            ASSERT_EQ(covered.within(from, to), length(intersect(set, {{from, to}}))) << from << " " << to;
    EXPECT_EQ(covered.within(10, 5), 0);
}

}  // namespace
}  // namespace rankscope::facts
