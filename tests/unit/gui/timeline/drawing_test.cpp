// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "gui/timeline/activity_bins.h"
#include "gui/timeline/track_drawing.h"

namespace rankscope::gui {
namespace {

TimeAxis axisOver(TimeRange whole, TimeRange visible, double width) {
    TimeAxis axis;
    axis.setWidth(width);
    axis.setWhole(whole);
    axis.show(visible);
    return axis;
}

Track randomTrack(unsigned seed, size_t events, int64_t maxDuration, int64_t maxGap,
                  EventKind kind = EventKind::compute) {
    std::mt19937 random(seed);
    Track track;
    int64_t now = 0;
    for (uint32_t i = 0; i < events; ++i) {
        const int64_t duration = 1 + static_cast<int64_t>(random() % static_cast<unsigned>(maxDuration));
        track.add({now, duration, 0, i, kind});
        now += duration + static_cast<int64_t>(random() % static_cast<unsigned>(maxGap));
    }
    track.finish();
    return track;
}

// The busy pixels of a drawing, boxes and specks together.
double busyPixels(const TrackDrawing& drawing) {
    double sum = 0;
    for (const Box& box : drawing.boxes) sum += box.width;
    for (const Speck& speck : drawing.specks) sum += speck.coverage;
    return sum;
}

int64_t busyIn(const Track& track, TimeRange range) {
    int64_t busy = 0;
    for (size_t i = 0; i < track.size(); ++i)
        busy += std::max<int64_t>(0, std::min(track.endNs(i), range.endNs) - std::max(track.startNs(i), range.beginNs));
    return busy;
}

TEST(DrawTrack, ShowsAsMuchTimeAsIsBusyAtEveryZoom) {
    const Track track = randomTrack(3, 50'000, 2'000, 2'000);
    const TimeRange whole = track.extent();
    for (int64_t span = whole.span(); span > 20'000; span /= 7) {
        const TimeRange visible{whole.span() / 3, whole.span() / 3 + span};
        const TimeAxis axis = axisOver(whole, visible, 1500);
        TrackDrawing drawing;
        drawTrack(track, axis, drawing);
        const double expected = static_cast<double>(busyIn(track, axis.visible())) * axis.pixelsPerNs();
        EXPECT_NEAR(busyPixels(drawing), expected, 0.01 * expected + 4) << span;
    }
}

TEST(DrawTrack, FindsTheBoxesThatLookingAtEveryEventFinds) {
    const Track track = randomTrack(4, 30'000, 20'000, 3'000);
    const TimeRange whole = track.extent();
    for (int64_t span = whole.span(); span > 20; span /= 3) {
        const TimeAxis axis = axisOver(whole, {whole.span() / 3, whole.span() / 3 + span}, 1500);
        TrackDrawing drawing;
        drawTrack(track, axis, drawing);
        std::vector<uint32_t> drawn, expected;
        for (const Box& box : drawing.boxes) drawn.push_back(box.event);
        for (uint32_t i = 0; i < track.size(); ++i)
            if (track.startNs(i) < axis.visible().endNs && track.endNs(i) > axis.visible().beginNs &&
                static_cast<double>(track.durNs(i)) * axis.pixelsPerNs() >= kMinBoxPixels)
                expected.push_back(i);
        EXPECT_EQ(drawn, expected) << span;
    }
}

// One of 50 lasts up to a thousand times as long as the others; of every third the first half waits.
Track longAmongShort() {
    std::mt19937 random(9);
    Track track;
    int64_t now = 0;
    for (uint32_t i = 0; i < 60'000; ++i) {
        const int64_t duration = 200 + static_cast<int64_t>(random() % (i % 50 == 7 ? 200'000 : 400));
        track.add({now, duration, 0, i, EventKind::communication, i % 3 == 0 ? duration / 2 : 0});
        now += duration + static_cast<int64_t>(random() % 200);
    }
    track.finish();
    return track;
}

TEST(DrawTrack, LongEventsAmongShortOnesStandWhereTheyAreAndSoDoTheOthers) {
    const Track track = longAmongShort();
    const TimeRange whole = track.extent();
    constexpr int kWidth = 1'500, kWindow = 15;  // columns that are compared as one: specks are blurred a little
    for (int64_t span = whole.span(); span > 20'000; span = span * 4 / 5) {
        const TimeAxis axis = axisOver(whole, {(whole.span() - span) / 3, (whole.span() - span) / 3 + span}, kWidth);
        TrackDrawing drawing;
        drawTrack(track, axis, drawing);
        std::vector<double> busy(kWidth), waiting(kWidth);  // by column, with boxes
        const auto cover = [&](std::vector<double>& columns, double from, double to) {
            for (auto x = static_cast<int>(std::max(0.0, from)); x < std::min<double>(kWidth, to); ++x)
                columns[static_cast<size_t>(x)] += std::min<double>(to, x + 1) - std::max<double>(from, x);
        };
        for (const Box& box : drawing.boxes) {
            const auto event = static_cast<size_t>(box.event);
            EXPECT_NEAR(box.x, std::max(-1.0, axis.xOf(track.startNs(event))), 0.01);
            EXPECT_NEAR(box.x + box.width, std::min<double>(kWidth + 1, axis.xOf(track.endNs(event))), 0.01);
            cover(busy, box.x, box.x + box.width);
            cover(waiting, box.x, box.x + box.waiting);
        }
        for (const Speck& speck : drawing.specks) busy[static_cast<size_t>(speck.x)] += speck.coverage;
        for (const WaitSpeck& speck : drawing.waits) waiting[static_cast<size_t>(speck.x)] += speck.coverage;
        std::vector<double> busyThen(kWidth), waitingThen(kWidth);
        for (size_t i = 0; i < track.size(); ++i) {
            const double from = axis.xOf(track.startNs(i));
            cover(busyThen, from, axis.xOf(track.endNs(i)));
            cover(waitingThen, from, axis.xOf(track.startNs(i) + track.waitNs(i)));
        }
        for (int x = 0; x + kWindow <= kWidth; x += kWindow) {
            const auto in = [&](const std::vector<double>& columns) {
                return std::accumulate(columns.begin() + x, columns.begin() + x + kWindow, 0.0);
            };
            EXPECT_NEAR(in(busy), in(busyThen), 1.5) << span << " " << x;
            EXPECT_NEAR(in(waiting), in(waitingThen), 1.5) << span << " " << x;
        }
        EXPECT_NEAR(std::accumulate(busy.begin(), busy.end(), 0.0),
                    std::accumulate(busyThen.begin(), busyThen.end(), 0.0), 0.01 * kWidth)
            << span;
    }
}

TEST(DrawTrack, ADrawingUsedBeforeIsAsGoodAsANewOne) {
    const Track track = randomTrack(6, 5'000, 3'000, 900);
    TrackDrawing used;
    for (const double width : {900.0, 300.0, 1200.0}) {
        const TimeAxis axis = axisOver(track.extent(), {1'000, 4'000'000}, width);
        TrackDrawing fresh;
        drawTrack(track, axis, used);
        drawTrack(track, axis, fresh);
        ASSERT_EQ(used.specks.size(), fresh.specks.size());
        for (size_t i = 0; i < used.specks.size(); ++i) EXPECT_EQ(used.specks[i].coverage, fresh.specks[i].coverage);
        EXPECT_EQ(used.boxes.size(), fresh.boxes.size());
    }
}

TEST(DrawTrack, CostsNoMoreForMoreEvents) {
    TrackDrawing few, many;
    const Track small = randomTrack(5, 20'000, 100, 100), large = randomTrack(5, 2'000'000, 100, 100);
    drawTrack(small, axisOver(small.extent(), small.extent(), 1000), few);
    drawTrack(large, axisOver(large.extent(), large.extent(), 1000), many);
    EXPECT_LE(few.specks.size(), 1000u);
    EXPECT_LE(many.specks.size(), 1000u);
    EXPECT_TRUE(many.boxes.empty());
}

TEST(DrawTrack, OneSmallEventIsNeverLost) {
    Track track;
    track.add({500'000'000, 1, 0, 0, EventKind::compute});
    track.finish();
    TrackDrawing drawing;
    drawTrack(track, axisOver({0, 1'000'000'000}, {0, 1'000'000'000}, 1000), drawing);
    ASSERT_EQ(drawing.specks.size(), 1u);
    EXPECT_EQ(drawing.specks[0].x, 500);
    EXPECT_GT(drawing.specks[0].coverage, 0);
}

TEST(DrawTrack, WideEventsAreClippedToThePicture) {
    Track track;
    track.add({0, 4'000'000'000'000, 0, 0, EventKind::compute});
    track.finish();
    TrackDrawing drawing;
    drawTrack(track, axisOver(track.extent(), {2'000'000'000'000, 2'000'000'000'100}, 1000), drawing);
    ASSERT_EQ(drawing.boxes.size(), 1u);
    EXPECT_LE(drawing.boxes[0].x, 0);
    EXPECT_LE(drawing.boxes[0].width, 1003);
    EXPECT_GE(drawing.boxes[0].x + drawing.boxes[0].width, 1000);
}

TEST(Activity, UnionsAreTakenAndNothingCountsTwice) {
    Track compute, second, communication, copies;
    compute.add({0, 100, 0, 0, EventKind::compute});
    second.add({50, 100, 0, 0, EventKind::compute});
    communication.add({120, 80, 0, 0, EventKind::communication});
    copies.add({190, 30, 0, 0, EventKind::copy});
    for (Track* track : {&compute, &second, &communication, &copies}) track->finish();
    const std::vector<const Track*> tracks{&compute, &second, &communication, &copies};
    const ActivityTimes times = activityIn(tracks, {0, 300});
    EXPECT_EQ(times[static_cast<size_t>(Activity::compute)], 120);
    EXPECT_EQ(times[static_cast<size_t>(Activity::overlapped)], 30);
    EXPECT_EQ(times[static_cast<size_t>(Activity::transfer)], 50);
    EXPECT_EQ(times[static_cast<size_t>(Activity::memory)], 20);
}

// Two streams: one transfers from 60 on and the other from 40 on, under compute until 20.
TEST(Activity, WaitingIsWhatAllCommunicationAtATimeWaits) {
    Track compute, first, second;
    compute.add({0, 20, 0, 0, EventKind::compute});
    first.add({0, 100, 0, 0, EventKind::communication, 60});
    second.add({10, 70, 0, 0, EventKind::communication, 30});
    for (Track* track : {&compute, &first, &second}) track->finish();
    const std::vector<const Track*> tracks{&compute, &first, &second};
    const ActivityTimes times = activityIn(tracks, {0, 100});
    EXPECT_EQ(times[static_cast<size_t>(Activity::overlapped)], 20);
    EXPECT_EQ(times[static_cast<size_t>(Activity::waiting)], 20);
    EXPECT_EQ(times[static_cast<size_t>(Activity::transfer)], 60);
}

// Each event waits for half of its time, whether it is drawn as a box, as a speck or among others in a node.
TEST(DrawTrack, WaitsCoverWhatWaitsAtEveryZoom) {
    Track track;
    for (uint32_t i = 0; i < 20'000; ++i) track.add({i * 100, 80, 0, i, EventKind::communication, 40});
    track.finish();
    TrackDrawing drawing;
    for (int64_t span = 2'000'000; span >= 200; span /= 3) {
        const int64_t begin = (2'000'000 - span) / 2;
        drawTrack(track, axisOver(track.extent(), {begin, begin + span}, 500), drawing);
        double waiting = 0;
        for (const Box& box : drawing.boxes) waiting += box.waiting;
        for (const WaitSpeck& speck : drawing.waits) waiting += speck.coverage;
        EXPECT_NEAR(waiting, busyPixels(drawing) / 2, 500 * 0.02 + 40.0 / static_cast<double>(span) * 500) << span;
    }
}

TEST(DrawTrack, WhatDoesNotWaitHasNoWaits) {
    const Track track = randomTrack(3, 5'000, 500, 500, EventKind::communication);
    TrackDrawing drawing;
    for (const int64_t span : {track.extent().span(), int64_t{40'000}, int64_t{900}}) {
        drawTrack(track, axisOver(track.extent(), {0, span}, 400), drawing);
        EXPECT_TRUE(drawing.waits.empty()) << span;
        for (const Box& box : drawing.boxes) EXPECT_EQ(box.waiting, 0) << span;
    }
}

TEST(Activity, BinsAgreeWithTheEventsAtEveryZoom) {
    const Track compute = randomTrack(7, 40'000, 900, 400),
                communication = randomTrack(8, 30'000, 700, 900, EventKind::communication);
    const std::vector<const Track*> tracks{&compute, &communication};
    const TimeRange whole = compute.extent();
    const ActivityBins bins(tracks, whole);
    for (int64_t span = whole.span(); span > bins.binNs() * 300; span /= 3) {
        const TimeRange range{whole.span() / 5, std::min(whole.endNs, whole.span() / 5 + span)};
        const auto shares = bins.shares(range);
        const ActivityTimes times = activityIn(tracks, range);
        for (size_t a = 0; a < kActivities; ++a)
            EXPECT_NEAR(shares[a], static_cast<double>(times[a]) / static_cast<double>(range.span()), 0.02)
                << span << " " << a;
    }
}

TEST(Activity, ColumnsCarryTheSameSharesFarAndNear) {
    const Track compute = randomTrack(9, 40'000, 900, 400),
                communication = randomTrack(10, 30'000, 700, 900, EventKind::communication);
    const std::vector<const Track*> tracks{&compute, &communication};
    const TimeRange whole = compute.extent();
    const ActivityBins bins(tracks, whole);
    for (const int64_t span : {whole.span(), whole.span() / 50, whole.span() / 5'000}) {
        const TimeAxis axis = axisOver(whole, {whole.span() / 4, whole.span() / 4 + span}, 800);
        std::vector<ActivityColumn> columns;
        drawActivity({&bins, tracks}, axis, columns);
        ActivityTimes times = activityIn(tracks, axis.visible());
        for (size_t a = 0; a < kActivities; ++a) {
            double sum = 0;
            for (const ActivityColumn& column : columns) sum += column.shares[a];
            const double expected = static_cast<double>(times[a]) * axis.pixelsPerNs();
            EXPECT_NEAR(sum, expected, 0.02 * expected + 4) << span << " " << a;
        }
        for (const ActivityColumn& column : columns)
            EXPECT_LE(std::accumulate(column.shares.begin(), column.shares.end(), 0.0f), 1.02);
    }
}

TEST(Activity, ALineOfTheAnalysisIsDrawnHoweverCloseUp) {
    // The first half computes, the second waits.
    std::vector<std::array<uint8_t, kActivities>> shares(64);
    for (size_t i = 0; i < shares.size(); ++i) shares[i][i < 32 ? 0 : 2] = 255;
    const ActivityBins bins(10'000, 1'000, shares);
    EXPECT_EQ(bins.binNs(), 1'000);
    EXPECT_NEAR(bins.shares({10'000, 74'000})[0], 0.5, 1e-3);
    const TimeAxis far = axisOver({0, 100'000}, {0, 100'000}, 100), near = axisOver({0, 100'000}, {41'800, 42'200}, 80);
    std::vector<ActivityColumn> columns;
    drawActivity({&bins, {}}, far, columns);
    ASSERT_EQ(columns.size(), 64u);
    EXPECT_EQ(columns.front().x, 10);
    EXPECT_NEAR(columns.front().shares[0], 1, 1e-3);
    EXPECT_NEAR(columns.back().shares[2], 1, 1e-3);
    drawActivity({&bins, {}}, near, columns);
    ASSERT_EQ(columns.size(), 80u);
    EXPECT_NEAR(columns.front().shares[0], 1, 1e-3);
    EXPECT_NEAR(columns.back().shares[2], 1, 1e-3);
    const TimeAxis nearest = axisOver({0, 100'000}, {50'000, 50'020}, 80);
    ASSERT_LT(static_cast<double>(nearest.visible().span()) / nearest.width(), 1) << "nanoseconds a pixel";
    drawActivity({&bins, {}}, nearest, columns);
    EXPECT_EQ(columns.size(), 80u);
}

}  // namespace
}  // namespace rankscope::gui
