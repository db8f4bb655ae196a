// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rankscope::gui {
namespace {

TEST(Curve, AValueHoldsUntilTheNext) {
    Curve curve(CurveUnit::bytes);
    curve.add(100, 5);
    curve.add(200, 9);
    curve.add(300, 2);
    curve.finish();
    EXPECT_FALSE(curve.at(99));
    EXPECT_EQ(curve.at(100), 5);
    EXPECT_EQ(curve.at(250), 9);
    EXPECT_EQ(curve.at(1'000'000), 2);
    EXPECT_EQ(curve.peak(), 9);
    EXPECT_FALSE(curve.highest({0, 100}));
    EXPECT_EQ(curve.highest({150, 160}), 5);
    EXPECT_EQ(curve.highest({150, 400}), 9);
    EXPECT_EQ(curve.highest({300, 400}), 2) << "what ended where the range begins is not in it";
}

TEST(Curve, TheHighestOfARangeIsThatOfItsValuesHoweverManyThereAre) {
    std::mt19937 random(5);
    Curve curve;
    std::vector<double> values;
    for (int64_t i = 0; i < 20'000; ++i) {
        values.push_back(static_cast<double>(random() % 1'000'000));
        curve.add(10 * i, values.back());
    }
    curve.finish();
    for (int i = 0; i < 500; ++i) {
        const size_t first = random() % values.size(), last = first + 1 + random() % (values.size() - first);
        const auto highest = *std::max_element(values.begin() + static_cast<ptrdiff_t>(first),
                                               values.begin() + static_cast<ptrdiff_t>(last));
        EXPECT_EQ(curve.highest({static_cast<int64_t>(10 * first), static_cast<int64_t>(10 * last)}), highest)
            << first << " " << last;
    }
}

TEST(Curve, APictureIsScaledToTheLimitWhereOneIsKnown) {
    Curve curve;
    curve.add(0, 20);
    curve.add(500, 40);
    curve.finish();
    TimeAxis axis;
    axis.setWhole({0, 1000});
    axis.setWidth(10);
    axis.fit();
    axis.show({0, 1000});
    std::vector<float> columns;
    drawCurve(curve, axis, columns);
    ASSERT_EQ(columns.size(), 10u);
    EXPECT_FLOAT_EQ(columns[2], 0.5f);
    EXPECT_FLOAT_EQ(columns[8], 1);
    curve.setLimit(80);
    drawCurve(curve, axis, columns);
    EXPECT_FLOAT_EQ(columns[8], 0.5f);
}

}  // namespace
}  // namespace rankscope::gui
