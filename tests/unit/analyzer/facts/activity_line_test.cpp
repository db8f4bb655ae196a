// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/activity_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rankscope::facts {
namespace {

IntervalSet randomSet(std::mt19937& random, int64_t endNs, int count) {
    std::uniform_int_distribution<int64_t> start(0, endNs - 50), length(1, 50);
    std::vector<Interval> result;
    for (int i = 0; i < count; ++i) {
        const int64_t s = start(random);
        result.push_back({s, s + length(random)});
    }
    return unite(std::move(result));
}

bool isIn(const IntervalSet& set, int64_t ns) {
    return std::ranges::any_of(set, [&](const Interval& i) { return i.startNs <= ns && ns < i.endNs; });
}

/// Which of the kinds a moment is of, by their definition; ActivityLine::kKinds: idle.
size_t kindAt(const DeviceActivity& activity, int64_t ns) {
    const bool computes = isIn(activity.compute, ns), transfers = isIn(activity.transfer, ns),
               waits = isIn(activity.wait, ns);
    if (computes) return transfers || waits ? 1 : 0;
    if (transfers) return 3;
    if (waits) return 2;
    return isIn(activity.memory, ns) ? 4 : ActivityLine::kKinds;
}

TEST(ActivityLine, SharesAreThoseOfEachMoment) {
    std::mt19937 random(5);
    for (int round = 0; round < 4; ++round) {
        constexpr int64_t kEnd = 20'000;  // bins of 10 ns or less
        const DeviceActivity activity{randomSet(random, kEnd, 200), randomSet(random, kEnd, 60),
                                      randomSet(random, kEnd, 60), randomSet(random, kEnd, 100)};
        const ActivityLine line = activityLine(activity);
        ASSERT_EQ(line.bins.size(), ActivityLine::kBins);
        for (size_t bin = 0; bin < line.bins.size(); ++bin) {
            std::array<int64_t, ActivityLine::kKinds + 1> ns{};
            for (int64_t i = 0; i < line.binNs; ++i)
                ++ns[kindAt(activity, line.startNs + static_cast<int64_t>(bin) * line.binNs + i)];
            for (size_t kind = 0; kind < ActivityLine::kKinds; ++kind)
                ASSERT_NEAR(line.bins[bin][kind],
                            255.0 * static_cast<double>(ns[kind]) / static_cast<double>(line.binNs), 0.5)
                    << round << " " << bin << " " << kind;
        }
    }
}

TEST(ActivityLine, WhatIsTooShortForItsBinIsStillThere) {
    const ActivityLine line =
        activityLine({{{0, 10}, {500'000'000, 500'000'001}, {1'000'000'000, 1'000'000'010}}, {}, {}, {}});
    size_t bins = 0;
    for (const ActivityLine::Bin& bin : line.bins) bins += bin[0] == 1;
    EXPECT_EQ(bins, 3u);
}

TEST(ActivityLine, ADeviceThatDidNothingHasNone) {
    EXPECT_TRUE(activityLine({}).bins.empty());
}

TEST(ActivityLine, TheShortestHasOneNanosecondABin) {
    const ActivityLine line = activityLine({{{-3, -2}}, {}, {}, {}});
    EXPECT_EQ(line.startNs, -3);
    EXPECT_EQ(line.binNs, 1);
    EXPECT_EQ(line.bins[0][0], 255);
    EXPECT_EQ(line.bins[1], ActivityLine::Bin{});
}

TEST(ActivityLine, ARecordingMayTakeYears) {
    constexpr int64_t kFar = ActivityLine::kFarthestNs;
    const ActivityLine line = activityLine({{{-kFar, 0}}, {{0, kFar}}, {}, {}});
    ASSERT_EQ(line.bins.size(), ActivityLine::kBins);
    EXPECT_EQ(line.bins.front()[0], 255);
    EXPECT_EQ(line.bins.back()[3], 255);
    EXPECT_TRUE(activityLine({{{-kFar - 1, 0}}, {}, {}, {}}).bins.empty());
    EXPECT_TRUE(activityLine({{{0, kFar + 1}}, {}, {}, {}}).bins.empty());
}

TEST(ActivityLine, TimesCenturiesAwayHaveNone) {
    EXPECT_TRUE(activityLine({{{0, 1}, {INT64_MAX - 5, INT64_MAX}}, {}, {}, {}}).bins.empty());
    EXPECT_TRUE(activityLine({{{INT64_MIN, INT64_MIN + 1}}, {}, {}, {}}).bins.empty());
}

}  // namespace
}  // namespace rankscope::facts
