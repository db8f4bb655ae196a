// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/ratio_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/unit/analyzer/units.h"

namespace rankscope::costs {
namespace {

using test::kKibi;
using test::kMebi;

/// What disturbs both settings alike: every second size takes a fifth longer.
double weather(double bytes) {
    return std::fmod(std::log2(bytes), 2) < 0.5 ? 1.2 : 1;
}

double disturbedNs(double bytes) {
    return (60e3 + bytes / 40) * weather(bytes);
}

/// Three quarters of the time, whatever the size.
double fasterNs(double bytes) {
    return 0.75 * disturbedNs(bytes);
}

SizeCurve swept(double from, double to, const std::function<double(double)>& ns, double error = 0) {
    std::vector<SizedTime> points;
    for (double bytes = from; bytes <= to; bytes *= 2) points.push_back({bytes, ns(bytes), error});
    return SizeCurve(std::move(points));
}

const SizeCurve kDisturbed = swept(4 * kKibi, 256 * kMebi, disturbedNs);

TEST(RatioCurve, WhatDisturbsBothSettingsLeavesTheirRatioAlone) {
    const SizeCurve faster = swept(4 * kKibi, 256 * kMebi, fasterNs);
    const auto ratio = RatioCurve(kDisturbed, faster).at(96 * kMebi);
    ASSERT_TRUE(ratio);
    EXPECT_NEAR(ratio->expected, 0.75, 1e-9);
    EXPECT_LT(ratio->high, 0.76);
    const auto one = kDisturbed.ns(96 * kMebi);
    EXPECT_GT(one->high, 1.05 * one->expected) << "each by itself is known less well";
}

TEST(RatioCurve, ARatioThatWavesFromSizeToSizeIsKnownNoBetterThanItWaves) {
    const SizeCurve waving = swept(4 * kKibi, 256 * kMebi, [](double bytes) {
        return disturbedNs(bytes) * 0.75 * (std::fmod(std::log2(bytes), 2) < 0.5 ? 1.15 : 1);
    });
    const auto ratio = RatioCurve(kDisturbed, waving).at(96 * kMebi);
    ASSERT_TRUE(ratio);
    EXPECT_LT(ratio->low, 0.75);
    EXPECT_GT(ratio->high, 0.75 * 1.15);
}

TEST(RatioCurve, AtAMeasuredSizeBothMeasurementsTellIt) {
    const SizeCurve faster = swept(4 * kKibi, 256 * kMebi, fasterNs, 0.03);
    const auto ratio = RatioCurve(kDisturbed, faster).at(64 * kMebi);
    ASSERT_TRUE(ratio);
    EXPECT_NEAR(ratio->expected, 0.75, 1e-9);
    EXPECT_NEAR(ratio->high / ratio->expected, 1.03, 1e-9);
}

TEST(RatioCurve, BesideAKinkOfEitherAndBeyondTheCommonSizesNothingIsTold) {
    const SizeCurve kinked =
        swept(4 * kKibi, 256 * kMebi, [](double bytes) { return fasterNs(bytes) * (bytes == 8 * kMebi ? 6 : 1); });
    ASSERT_TRUE(kinked.isKink(8 * kMebi));
    const RatioCurve curve(kDisturbed, kinked);
    EXPECT_FALSE(curve.at(6 * kMebi));
    EXPECT_FALSE(curve.at(12 * kMebi));
    EXPECT_TRUE(curve.at(96 * kMebi));
    // A size that is alike a measured one is that one, whatever lies behind it.
    ASSERT_TRUE(curve.at(4.01 * kMebi));
    EXPECT_NEAR(curve.at(4.01 * kMebi)->high, 0.75, 1e-9);
    EXPECT_NEAR(curve.at(15.9 * kMebi)->low, 0.75, 1e-9);
    EXPECT_FALSE(curve.at(8.01 * kMebi));
    EXPECT_FALSE(curve.at(512 * kMebi));
    EXPECT_FALSE(curve.at(kKibi));
}

TEST(RatioCurve, FewCommonSizesTellNoError) {
    EXPECT_FALSE(RatioCurve(kDisturbed, swept(16 * kMebi, 256 * kMebi, fasterNs)).at(96 * kMebi));
    EXPECT_TRUE(RatioCurve(kDisturbed, swept(8 * kMebi, 256 * kMebi, fasterNs)).at(96 * kMebi));
    EXPECT_FALSE(RatioCurve(kDisturbed, SizeCurve()).at(96 * kMebi));
}

}  // namespace
}  // namespace rankscope::costs
