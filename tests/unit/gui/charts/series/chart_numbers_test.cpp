// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "gui/charts/series/grid_chart.h"
#include "gui/charts/series/quantity.h"
#include "gui/charts/series/scatter_chart.h"

namespace rankscope::gui {
namespace {

TEST(Quantity, HasThreeDigitsAndAUnit) {
    EXPECT_EQ(quantityText(Quantity::bytes, 16'777'216), "16 MiB");
    EXPECT_EQ(quantityText(Quantity::bytes, 1'536), "1.50 KiB");
    EXPECT_EQ(quantityText(Quantity::bytes, 1'023.9), "1.00 KiB");
    EXPECT_EQ(quantityText(Quantity::bytes, 1'024), "1 KiB");
    EXPECT_EQ(quantityText(Quantity::bytes, 7), "7 B");
    EXPECT_EQ(quantityText(Quantity::bytesPerNs, 120), "120 GB/s");
    EXPECT_EQ(quantityText(Quantity::share, 0.125), "12.5 %");
    EXPECT_EQ(quantityText(Quantity::nsPerByte, 0.005), "5 ms/GB");
    EXPECT_EQ(quantityText(Quantity::nsPerByte, 1), "1 s/GB");
    EXPECT_EQ(quantityText(Quantity::nanoseconds, 1e300), quantityText(Quantity::nanoseconds, 9e18));
    EXPECT_EQ(quantityText(Quantity::count, NAN), "unknown");
}

TEST(AxisTicks, AreRoundAndInside) {
    EXPECT_EQ(axisTicks(0, 10, false, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
    EXPECT_EQ(axisTicks(50, 5'000, true, 10), (std::vector<double>{50, 100, 200, 500, 1'000, 2'000, 5'000}));
    EXPECT_EQ(axisTicks(50, 5'000, true, 4), (std::vector<double>{50, 200, 1'000, 5'000}));
    EXPECT_EQ(axisTicks(1, 1e4, true, 10), (std::vector<double>{1, 10, 100, 1'000, 10'000}));
    EXPECT_LE(axisTicks(1, 1e300, true, 10).size(), 11u);
    EXPECT_TRUE(axisTicks(5, 5, false, 5).empty());
    EXPECT_TRUE(axisTicks(0, 5, true, 5).empty());
    EXPECT_TRUE(axisTicks(-INFINITY, NAN, false, 5).empty());
}

TEST(QuantityTicks, SizesAreRoundInTheirUnits) {
    constexpr double kKi = 1'024, kMi = kKi * kKi;
    EXPECT_EQ(quantityTicks(Quantity::bytes, kKi, kMi, true, 3), (std::vector<double>{kKi, 32 * kKi, kMi}));
    EXPECT_EQ(quantityTicks(Quantity::bytes, 0, 4 * kMi, false, 2), (std::vector<double>{0, 2 * kMi, 4 * kMi}));
    EXPECT_EQ(quantityTicks(Quantity::share, 0, 10, false, 5), axisTicks(0, 10, false, 5));
    EXPECT_TRUE(quantityTicks(Quantity::bytes, 0, 5, true, 5).empty());
    EXPECT_TRUE(quantityTicks(Quantity::bytes, -INFINITY, NAN, true, 5).empty());
}

TEST(PointCollector, LabelledPointsNameTheirRanks) {
    PointCollector collector(true);
    for (const int32_t rank : {2, 0, 1, 2, 7}) collector.add(0, 10, 20, {EventTable::step, 1, rank, {}});
    collector.add(0, 100, 20, {EventTable::step, 1, 5, {}});
    ASSERT_EQ(collector.points().size(), 2u);
    EXPECT_EQ(collector.points()[0].label, "ranks 0-2, 7");
    EXPECT_EQ(collector.points()[1].label, "rank 5");
}

TEST(PointCollector, MillionsBecomeAPicturesWorth) {
    PointCollector collector;
    for (int i = 0; i < 300'000; ++i) collector.add(0, 1e6 * (1 + i * 1e-9), 100, {EventTable::kernel, i, 0, {}});
    collector.add(1, 1e6, 100, {});
    for (const double bad : {0.0, -1.0, double{INFINITY}, double{NAN}}) collector.add(0, bad, 100, {});
    const auto points = collector.points();
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[0].count, 300'000);
    EXPECT_EQ(points[0].target.rowId, 0);
    EXPECT_EQ(points[1].series, 1);
}

TEST(CellMap, DealsMembersEvenly) {
    const CellMap few(8, 512), many(1'025, 512);
    EXPECT_EQ(few.cells(), 8u);
    EXPECT_EQ(many.perCell, 3u);
    EXPECT_EQ(many.cellOf(1'024), many.cells() - 1);
    EXPECT_LE(many.cells(), 512u);
    EXPECT_EQ(CellMap(0, 512).cells(), 0u);
    const GridAxis axis = numberedAxis("rank", "rank", {0, 1, 2, 7}, CellMap(4, 2));
    EXPECT_EQ(axis.labels, (std::vector<std::string>{"ranks 0-1", "ranks 2-7"}));
}

}  // namespace
}  // namespace rankscope::gui
