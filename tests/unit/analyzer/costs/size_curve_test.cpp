// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/size_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/unit/analyzer/units.h"

namespace rankscope::costs {
namespace {

using test::kKibi;
using test::kMebi;

double lineNs(double bytes) {
    return 30e3 + bytes / 100;
}

/// Doublings from one size to another, each taking `ns(bytes)`.
std::vector<SizedTime> doublings(double from, double to, const std::function<double(double)>& ns, double error = 0) {
    std::vector<SizedTime> points;
    for (double bytes = from; bytes <= to; bytes *= 2) points.push_back({bytes, ns(bytes), error});
    return points;
}

double errorAt(const SizeCurve& curve, double bytes) {
    const auto ns = curve.ns(bytes);
    return ns ? ns->high / ns->expected - 1 : -1;
}

TEST(SizeCurve, AMeasuredSizeTakesWhatItTook) {
    const SizeCurve curve(doublings(kKibi, 64 * kMebi, lineNs, 0.05));
    const auto ns = curve.ns(kMebi);
    ASSERT_TRUE(ns);
    EXPECT_DOUBLE_EQ(ns->expected, lineNs(kMebi));
    EXPECT_DOUBLE_EQ(ns->high, 1.05 * lineNs(kMebi));
    EXPECT_DOUBLE_EQ(ns->low, lineNs(kMebi) / 1.05);
}

TEST(SizeCurve, BetweenSizesALineIsALine) {
    const SizeCurve curve(doublings(kKibi, 64 * kMebi, lineNs));
    for (const double bytes : {1.4 * kKibi, 1.5 * kMebi, 3.0 * kMebi, 5.0 * kMebi, 50.0 * kMebi}) {
        const auto ns = curve.ns(bytes);
        ASSERT_TRUE(ns);
        EXPECT_NEAR(ns->expected / lineNs(bytes), 1, 0.005) << bytes;
        EXPECT_LE(ns->low, 1.000001 * lineNs(bytes)) << bytes;
        EXPECT_GE(1.000001 * ns->high, lineNs(bytes)) << bytes;
        EXPECT_LT(ns->high / ns->low, 1.1) << bytes;
    }
    EXPECT_TRUE(curve.kinks().empty());
}

TEST(SizeCurve, TheErrorIsWhatLeavingSizesOutShows) {
    const auto noisy = [](double bytes) {
        return lineNs(bytes) * (std::lround(std::log2(bytes)) % 2 == 0 ? 1.1 : 0.9);
    };
    const double smooth = errorAt(SizeCurve(doublings(kKibi, 64 * kMebi, lineNs)), 1.4 * kMebi);
    const double rough = errorAt(SizeCurve(doublings(kKibi, 64 * kMebi, noisy)), 1.4 * kMebi);
    EXPECT_LT(smooth, 0.04);
    EXPECT_GT(rough, 0.1);
    EXPECT_LT(rough, 0.4);
}

TEST(SizeCurve, ARoughStretchLeavesTheRestAsItIs) {
    const SizeCurve curve(doublings(kKibi, 1024 * kMebi, [](double bytes) {
        const bool rough = bytes < 64 * kKibi && std::lround(std::log2(bytes)) % 2 == 0;
        return lineNs(bytes) * (rough ? 1.3 : 1);
    }));
    EXPECT_GT(errorAt(curve, 6 * kKibi), 0.15);
    EXPECT_LT(errorAt(curve, 48 * kMebi), 0.04);
}

TEST(SizeCurve, FewSizesAndWideGapsAreKnownLessWell) {
    const double dense = errorAt(SizeCurve(doublings(kMebi, 64 * kMebi, lineNs)), 12 * kMebi);
    const double three =
        errorAt(SizeCurve({{kMebi, lineNs(kMebi)}, {8 * kMebi, lineNs(8 * kMebi)}, {64 * kMebi, lineNs(64 * kMebi)}}),
                24 * kMebi);
    const double two = errorAt(SizeCurve({{kMebi, lineNs(kMebi)}, {64 * kMebi, lineNs(64 * kMebi)}}), 8 * kMebi);
    EXPECT_GT(three, 3 * dense);
    EXPECT_GT(three, SizeCurve::kWorldError);
    EXPECT_GT(two, three);
}

TEST(SizeCurve, BeyondTheSizesTheErrorGrowsWithTheWay) {
    const SizeCurve curve(doublings(kMebi, 64 * kMebi, lineNs, 0.02));
    EXPECT_NEAR(curve.ns(100 * kMebi)->expected / lineNs(100 * kMebi), 1, 0.01);
    EXPECT_NEAR(curve.ns(0.6 * kMebi)->expected / lineNs(0.6 * kMebi), 1, 0.01);
    EXPECT_LT(errorAt(curve, 64 * kMebi), errorAt(curve, 100 * kMebi));
    EXPECT_LT(errorAt(curve, 100 * kMebi), errorAt(curve, 200 * kMebi));
}

TEST(SizeCurve, SizesThatHardlyDifferTellNothingOfOthers) {
    const SizeCurve one({{kMebi, 1e5}}), alike({{8 * kMebi, 1e5}, {16 * kMebi, 1.9e5}});
    EXPECT_DOUBLE_EQ(one.ns(kMebi)->expected, 1e5);
    EXPECT_FALSE(one.ns(2 * kMebi));
    EXPECT_TRUE(alike.ns(12 * kMebi));
    EXPECT_FALSE(alike.ns(32 * kMebi));
    EXPECT_FALSE(SizeCurve().ns(kMebi));
    EXPECT_FALSE(one.ns(0));
}

TEST(SizeCurve, ASizeThatTakesLongerThanALargerOneIsAKink) {
    const SizeCurve curve(doublings(kKibi, 64 * kMebi, [](double bytes) {
        return bytes == kMebi || bytes == kMebi / 2 ? 5 * lineNs(bytes) : lineNs(bytes);
    }));
    ASSERT_EQ(curve.kinks().size(), 2u);
    const Kink& kink = curve.kinks()[1];
    EXPECT_DOUBLE_EQ(kink.bytes, kMebi);
    EXPECT_DOUBLE_EQ(kink.insteadBytes, 2 * kMebi);
    EXPECT_NEAR(kink.insteadNs, lineNs(2 * kMebi), 1);
    EXPECT_NEAR(kink.times(), 5, 0.3);
    EXPECT_DOUBLE_EQ(curve.kinks()[0].insteadBytes, 2 * kMebi) << "1 MiB is no better";
    // It takes what it took, and other sizes what theirs say.
    EXPECT_DOUBLE_EQ(curve.ns(kMebi)->expected, 5 * lineNs(kMebi));
    EXPECT_NEAR(curve.ns(3 * kMebi)->expected / lineNs(3 * kMebi), 1, 0.02);
    EXPECT_NEAR(curve.ns(1.5 * kMebi)->expected / lineNs(1.5 * kMebi), 1, 0.05);
    EXPECT_GE(curve.ns(1.5 * kMebi)->high, 5 * lineNs(kMebi)) << "nobody knows where it ends";
    EXPECT_LT(curve.ns(3 * kMebi)->high, 1.1 * lineNs(3 * kMebi));
}

TEST(SizeCurve, WhatSticksOutBetweenItsNeighboursIsAKink) {
    // No larger size is faster: 4 MiB takes 1.3 times 8 MiB's time less than a kink asks for.
    const auto stickingOut = [](double times) {
        return SizeCurve(doublings(kMebi, 64 * kMebi,
                                   [times](double bytes) { return bytes / 100 * (bytes == 4 * kMebi ? times : 1); }));
    };
    EXPECT_TRUE(stickingOut(1.9).kinks().empty());
    const SizeCurve curve = stickingOut(2.3);
    ASSERT_EQ(curve.kinks().size(), 1u);
    EXPECT_DOUBLE_EQ(curve.kinks()[0].bytes, 4 * kMebi);
}

TEST(SizeCurve, NoiseIsNoKink) {
    const auto with = [](double times, double error) {
        return SizeCurve(doublings(
            kKibi, 64 * kKibi, [times](double bytes) { return bytes == 4 * kKibi ? times * 30e3 : 30e3; }, error));
    };
    EXPECT_TRUE(with(1.45, 0).kinks().empty());
    EXPECT_EQ(with(1.6, 0).kinks().size(), 1u);
    EXPECT_TRUE(with(1.6, 0.1).kinks().empty()) << "measuring again may give 1.45";
    // What grows with the size has none, however fast.
    EXPECT_TRUE(SizeCurve(doublings(kKibi, 64 * kMebi, [](double bytes) { return bytes; })).kinks().empty());
}

TEST(SizeCurve, SizesThatAreNearlyTheSameCountAsOne) {
    const SizeCurve curve(
        {{kMebi, 100}, {1.01 * kMebi, 104}, {1.02 * kMebi, 102}, {8 * kMebi, 400}, {32 * kMebi, 1500}});
    EXPECT_EQ(curve.points().size(), 3u);
    EXPECT_DOUBLE_EQ(curve.points()[0].ns, 102);
    EXPECT_LT(curve.points()[0].error, 0.05);
}

TEST(SizeCurve, AStepBetweenSizesThatAreNearlyTheSameStays) {
    // A published table of two nodes: NCCL changes its algorithm between 1.0 and 1.1 MB.
    const SizeCurve curve({{7e5, 273e3}, {8e5, 299e3}, {9e5, 321e3}, {1e6, 330e3}, {1.1e6, 156e3}, {1.2e6, 168e3}});
    EXPECT_DOUBLE_EQ(curve.ns(1.1e6)->expected, 156e3);
    ASSERT_FALSE(curve.kinks().empty());
    EXPECT_DOUBLE_EQ(curve.kinks().back().bytes, 1e6);
    EXPECT_DOUBLE_EQ(curve.kinks().back().insteadBytes, 1.1e6);
    EXPECT_GE(curve.kinks().back().times(), 330. / 156) << "1.1 MB takes 156 us, and 1 MB no more than that";
    EXPECT_LT(curve.kinks().back().times(), 1.1 * 330 / 156);
}

TEST(SizeCurve, TimesOfOneSizeThatContradictLeaveBothOpen) {
    std::vector<SizedTime> points = doublings(kMebi, 64 * kMebi, lineNs, 0.05);
    for (const SizedTime& one : doublings(kMebi, 64 * kMebi, lineNs, 0.05))
        points.push_back({one.bytes, 2 * one.ns, 0.05});
    const auto ns = SizeCurve(points).ns(8 * kMebi);
    ASSERT_TRUE(ns);
    EXPECT_LE(ns->low, lineNs(8 * kMebi) * 1.0001);
    EXPECT_GE(ns->high, 2 * lineNs(8 * kMebi));
}

}  // namespace
}  // namespace rankscope::costs
