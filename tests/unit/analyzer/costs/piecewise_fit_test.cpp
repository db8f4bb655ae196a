// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/piecewise_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::costs {
namespace {

std::vector<SizedTime> sweep(double from, double to, double (*timeNs)(double), double noise = 0) {
    std::vector<SizedTime> samples;
    int i = 0;
    for (double bytes = from; bytes <= to; bytes *= 2)
        for (int k = 0; k < 3; ++k) samples.push_back({bytes, timeNs(bytes) * (1 + noise * std::sin(7.0 * ++i))});
    return samples;
}

TEST(PiecewiseFit, OneLineStaysOnePiece) {
    const PiecewiseFit fit = fitPieces(sweep(
        1 << 10, 1 << 28, [](double bytes) { return 50e3 + bytes / 100; }, 0.02));
    ASSERT_TRUE(fit.holds()) << fit.refused;
    ASSERT_EQ(fit.pieces.size(), 1u);
    EXPECT_NEAR(fit.pieces[0].alphaNs, 50e3, 1e3);
    EXPECT_NEAR(fit.pieces[0].betaNsPerByte, 0.01, 2e-4);
    EXPECT_LT(fit.residual, 0.02);
    EXPECT_EQ(fit.samples, 3 * fit.sizes);
}

TEST(PiecewiseFit, AChangeOfProtocolIsAnotherPiece) {
    // LL up to 1 MiB: 20 us and 40 GB/s; Simple above: 80 us and 120 GB/s.
    const auto time = [](double bytes) { return bytes <= (1 << 20) ? 20e3 + bytes / 40 : 80e3 + bytes / 120; };
    const PiecewiseFit fit = fitPieces(sweep(1 << 10, 1 << 28, time, 0.01));
    ASSERT_TRUE(fit.holds()) << fit.refused;
    ASSERT_GE(fit.pieces.size(), 2u);
    for (double bytes : {4096.0, 524288.0, 8388608.0, 134217728.0})
        EXPECT_NEAR(fit.timeNs(bytes) / time(bytes), 1, 0.05) << bytes;
}

TEST(PiecewiseFit, HoldsUpToTwiceTheSizesSeenAndNoFurther) {
    const PiecewiseFit fit = fitPieces(sweep(1 << 20, 1 << 24, [](double bytes) { return 10e3 + bytes / 50; }));
    EXPECT_TRUE(fit.holdsAt(1 << 25));
    EXPECT_FALSE(fit.holdsAt((1 << 25) + 1));
    EXPECT_TRUE(fit.holdsAt(1 << 19));
    EXPECT_FALSE(fit.holdsAt((1 << 19) - 1));
}

TEST(PiecewiseFit, ThinDataAreRefusedWithTheReason) {
    const auto line = [](double bytes) { return 10e3 + bytes / 50; };
    EXPECT_NE(fitPieces({}).refused.find("0 samples"), std::string::npos);
    std::vector<SizedTime> twoSizes;
    for (int i = 0; i < 20; ++i) twoSizes.push_back({i % 2 == 0 ? 1e6 : 64e6, line(i % 2 == 0 ? 1e6 : 64e6)});
    EXPECT_NE(fitPieces(twoSizes).refused.find("2 sizes"), std::string::npos);
    std::vector<SizedTime> narrow;
    for (int i = 0; i < 20; ++i) narrow.push_back({1e6 + 1e5 * i, line(1e6 + 1e5 * i)});
    EXPECT_NE(fitPieces(narrow).refused.find("sizes differ by 2.9x"), std::string::npos) << fitPieces(narrow).refused;
    std::vector<SizedTime> wild;
    for (int i = 0; i < 20; ++i) wild.push_back({std::pow(2, 10 + i % 5), (i % 5) % 2 == 0 ? 1e3 : 9e3});
    EXPECT_NE(fitPieces(wild).refused.find("deviate"), std::string::npos);
    EXPECT_FALSE(fitPieces(wild).holdsAt(4096));
}

}  // namespace
}  // namespace rankscope::costs
