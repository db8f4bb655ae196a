// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/slow_since.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace rankscope::diagnose {
namespace {

constexpr size_t kSeries = 8;

/// Ratios of 12 steps that differ by +/- 0.005 by turns, on top of what `of` gives.
std::vector<double> ratios(double (*of)(int step)) {
    std::vector<double> values;
    for (int step = 0; step < 12; ++step) values.push_back(of(step) + (step % 2 ? 0.005 : -0.005));
    return values;
}

TEST(ChangeOfPace, IsWhereTheStepsDivideIntoTwoLevels) {
    const std::optional<PaceChange> change = changeOfPace(ratios([](int s) { return s < 7 ? 1.0 : 1.3; }), kSeries);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->firstStep, 7u);
    EXPECT_NEAR(change->before, 1, 0.006);
    EXPECT_NEAR(change->since, 1.3, 0.006);
}

TEST(ChangeOfPace, StepsInWhichNothingWasComparedCountForNothing) {
    std::vector<double> values = ratios([](int s) { return s < 7 ? 1.0 : 1.3; });
    values.insert(values.begin() + 3, 0);
    const std::optional<PaceChange> change = changeOfPace(values, kSeries);
    ASSERT_TRUE(change);
    EXPECT_EQ(change->firstStep, 8u);
}

TEST(ChangeOfPace, WhatGrowsLittleByLittleIsToldAsSuchWithWhereItBeganAndWhereItGot) {
    const std::optional<PaceChange> whole = changeOfPace(ratios([](int s) { return 1 + 0.03 * s; }), kSeries);
    ASSERT_TRUE(whole);
    EXPECT_TRUE(whole->isGradual);
    EXPECT_EQ(whole->firstStep, 1u);
    EXPECT_NEAR(whole->before, 1, 0.01);
    EXPECT_NEAR(whole->since, 1.33, 0.01);
    const auto late = changeOfPace(ratios([](int s) { return s < 6 ? 1 : 1 + 0.05 * (s - 5); }), kSeries);
    ASSERT_TRUE(late);
    EXPECT_TRUE(late->isGradual);
    EXPECT_EQ(late->firstStep, 6u);
    EXPECT_NEAR(late->before, 1, 0.01);
    EXPECT_NEAR(late->since, 1.3, 0.01);
    EXPECT_FALSE(changeOfPace(ratios([](int s) { return s < 7 ? 1.0 : 1.3; }), kSeries)->isGradual);
}

TEST(ChangeOfPace, WhatShrinksGrowsByLessThanAStragglersOrThroughNoiseAloneHasNone) {
    EXPECT_FALSE(changeOfPace(ratios([](int s) { return 1.4 - 0.03 * s; }), kSeries));
    EXPECT_FALSE(changeOfPace(ratios([](int s) { return 1 + 0.002 * s; }), kSeries));
    EXPECT_FALSE(changeOfPace(ratios([](int s) { return 1 + 0.1 * ((s * 5) % 12) / 12; }), kSeries));
}

TEST(ChangeOfPace, NorHasWhatBecameFasterRecoveredOrNeverMoved) {
    EXPECT_FALSE(changeOfPace(ratios([](int s) { return s < 7 ? 1.3 : 1.0; }), kSeries));
    EXPECT_FALSE(changeOfPace(ratios([](int s) { return s < 4 || s > 9 ? 1.0 : 1.3; }), kSeries));
    EXPECT_FALSE(changeOfPace(ratios([](int) { return 1.0; }), kSeries));
    EXPECT_FALSE(changeOfPace({}, kSeries));
    EXPECT_FALSE(changeOfPace({1, 1, 1, 1.3, 1.3, 1.3}, kSeries)) << "too few steps on either side";
}

}  // namespace
}  // namespace rankscope::diagnose
