// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/time_axis.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::gui {
namespace {

constexpr int64_t kHour = 3'600'000'000'000;

TimeAxis axisOver(TimeRange whole, double width = 1000) {
    TimeAxis axis;
    axis.setWidth(width);
    axis.setWhole(whole);
    axis.fit();
    return axis;
}

TEST(TimeAxis, MapsTheEdgesOfWhatIsVisibleToTheEdgesOfThePicture) {
    const TimeAxis axis = axisOver({100, 1100});
    EXPECT_DOUBLE_EQ(axis.xOf(100), 0);
    EXPECT_DOUBLE_EQ(axis.xOf(1100), 1000);
    EXPECT_EQ(axis.timeAt(500), 600);
}

TEST(TimeAxis, ZoomingKeepsTheTimeUnderThePointerFromHoursToNanoseconds) {
    TimeAxis axis = axisOver({0, kHour}, 1920);
    const double x = 700;
    const int64_t under = axis.timeAt(x);
    for (int i = 0; i < 200; ++i) axis.zoomAt(x, 0.8);
    EXPECT_EQ(axis.visible().span(), TimeAxis::kMinSpanNs);
    // Each of the 40-odd zooms that round to whole nanoseconds may lose half of one.
    EXPECT_LE(std::abs(axis.timeAt(x) - under), 25);
    for (int i = 0; i < 200; ++i) axis.zoomAt(x, 1.25);
    EXPECT_EQ(axis.visible(), (TimeRange{0, kHour}));
}

TEST(TimeAxis, NeverLeavesTheRun) {
    TimeAxis axis = axisOver({0, 10'000});
    axis.show({2'000, 4'000});
    axis.panBy(-1e9);
    EXPECT_EQ(axis.visible(), (TimeRange{0, 2'000}));
    axis.panBy(1e9);
    EXPECT_EQ(axis.visible(), (TimeRange{8'000, 10'000}));
    axis.zoomAt(0, 1e12);
    EXPECT_EQ(axis.visible(), (TimeRange{0, 10'000}));
}

TEST(TimeAxis, AnEmptyRunStillHasASpan) {
    const TimeAxis axis = axisOver({5, 5});
    EXPECT_GE(axis.visible().span(), TimeAxis::kMinSpanNs);
    EXPECT_TRUE(std::isfinite(axis.pixelsPerNs()));
}

TEST(TimeAxis, GrowingRunsStayFittedUnlessTheUserZoomed) {
    TimeAxis axis = axisOver({0, 1'000});
    axis.setWhole({0, 5'000});
    EXPECT_EQ(axis.visible(), (TimeRange{0, 5'000}));
    axis.show({100, 200});
    axis.setWhole({0, 9'000});
    EXPECT_EQ(axis.visible(), (TimeRange{100, 200}));
}

TEST(TimeAxis, RevealingMovesOnlyWhenItMust) {
    TimeAxis axis = axisOver({0, 100'000});
    axis.show({0, 10'000});
    axis.reveal({4'000, 5'000});
    EXPECT_EQ(axis.visible(), (TimeRange{0, 10'000}));
    axis.reveal({50'000, 52'000});
    EXPECT_TRUE(axis.visible().contains(50'000) && axis.visible().contains(52'000));
    axis.fit();
    axis.reveal({50'000, 50'010});  // a hair at this zoom
    EXPECT_GE(10 * axis.pixelsPerNs(), 8);
}

TEST(TimeAxis, RulerLinesAreRoundAndFarEnoughApart) {
    for (const int64_t span : {50LL, 777LL, 12'345LL, 98'765'432LL, 3'600'000'000'000LL}) {
        TimeAxis axis = axisOver({0, kHour});
        axis.show({1'000'000, 1'000'000 + span});
        const Ruler ruler = axis.ruler(80);
        ASSERT_GE(ruler.ticks.size(), 2u) << span;
        for (size_t i = 1; i < ruler.ticks.size(); ++i)
            EXPECT_GE(ruler.ticks[i].x - ruler.ticks[i - 1].x, 79.9) << span;
        int64_t step = ruler.ticks[1].timeNs - ruler.ticks[0].timeNs;
        while (step % 10 == 0) step /= 10;
        EXPECT_TRUE(step == 1 || step == 2 || step == 5) << span;
    }
}

TEST(TimeAxis, DeepInALongRunLabelsCountFromANamedBase) {
    TimeAxis axis = axisOver({0, kHour});
    axis.show({1'800'000'000'123, 1'800'000'000'623});
    const Ruler ruler = axis.ruler(80);
    EXPECT_FALSE(ruler.baseLabel.empty());
    for (const Tick& tick : ruler.ticks) {
        EXPECT_EQ(tick.label.front(), '+');
        EXPECT_LE(tick.label.size(), 12u);
    }
}

TEST(DurationText, HasThreeDigitsAndAUnit) {
    EXPECT_EQ(durationText(0), "0 ns");
    EXPECT_EQ(durationText(999), "999 ns");
    EXPECT_EQ(durationText(1'250), "1.25 us");
    EXPECT_EQ(durationText(45'600'000), "45.6 ms");
    EXPECT_EQ(durationText(-3'000'000'000), "-3.00 s");
}

TEST(TimeAxis, TimesOfADamagedFileLeaveARulerThatEnds) {
    TimeAxis axis;
    axis.setWidth(1000);
    axis.setWhole({INT64_MIN, INT64_MAX});
    axis.fit();
    EXPECT_GT(axis.visible().span(), 0);
    EXPECT_LE(axis.ruler(80).ticks.size(), 14u);
}

TEST(TimeAxis, BesideAnotherRunItReachesBeyondItsOwn) {
    TimeAxis axis;
    axis.setWhole({0, 1000});
    axis.fit();
    axis.setRoom({-200, 1500}, {-100, 1200});
    EXPECT_EQ(axis.visible(), (TimeRange{-100, 1200}));  // it showed all, and still does
    axis.show({-5000, 9000});
    EXPECT_EQ(axis.visible(), (TimeRange{-200, 1500}));
    axis.show({1400, 1450});
    EXPECT_EQ(axis.visible(), (TimeRange{1400, 1450}));
    EXPECT_EQ(axis.whole(), (TimeRange{0, 1000}));
    axis.place({4000, 4100});  // the other run is there
    EXPECT_EQ(axis.visible(), (TimeRange{4000, 4100}));
    axis.panBy(0);
    EXPECT_EQ(axis.visible(), (TimeRange{1400, 1500}));
    axis.setWhole({0, 1000});  // a run on its own again
    axis.show({1400, 1500});
    EXPECT_EQ(axis.visible(), (TimeRange{900, 1000}));
}

}  // namespace
}  // namespace rankscope::gui
