// SPDX-License-Identifier: Apache-2.0
#include "gui/session/device_ranges.h"

#include <gtest/gtest.h>

#include "gui/session/event_names.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

enum Name : uint32_t { forward = 1, layer, loading };

TEST(RangesOnDevice, LastFromTheFirstToTheLastOfWhatTheyCalledFor) {
    // Launched in 100 ns of the host, run for 1,000 of the device, long after.
    const std::vector<DeviceRange> found =
        rangesOnDevice({{7, 0, 100, forward, 0}, {7, 20, 60, layer, 1}, {7, 200, 300, loading, 2}},
                       {{7, 10, 1}, {7, 30, 2}, {7, 60, 3}, {7, 150, 4}, {9, 30, 5}},
                       {{1, 1000, 1100}, {2, 1100, 1600}, {3, 1700, 2000}, {4, 2500, 2600}, {5, 3000, 9000}});
    ASSERT_EQ(found.size(), 2u);  // nothing was called for while data were loaded, and thread 9 had no range
    EXPECT_EQ(found[0].event.name, forward);
    EXPECT_EQ(found[0].event.startNs, 1000);
    EXPECT_EQ(found[0].event.durNs, 1000);
    EXPECT_EQ(found[1].event.name, layer);
    EXPECT_EQ(found[1].event.startNs, 1100);
    EXPECT_EQ(found[1].event.durNs, 500);  // the call at 60 is behind its end
    EXPECT_EQ(found[1].event.row, 1u);
    EXPECT_EQ(found[1].thread, 7);
}

TEST(RangesOnDevice, ThatOverlapWithoutNestingBothHoldTheCall) {
    const std::vector<DeviceRange> found = rangesOnDevice({{7, 0, 50, forward, 0}, {7, 40, 90, layer, 1}},
                                                          {{7, 45, 1}, {7, 60, 2}}, {{1, 100, 200}, {2, 300, 400}});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].event.name, layer);  // of equal starts the longer first
    EXPECT_EQ(found[0].event.durNs, 300);
    EXPECT_EQ(found[1].event.durNs, 100);
}

TEST(RangesOnDevice, AllKernelsOfAGraphAreItsCallS) {
    const std::vector<DeviceRange> found =
        rangesOnDevice({{7, 0, 50, forward, 0}}, {{7, 10, 1}}, {{1, 100, 200}, {1, 500, 900}, {1, 300, 400}});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].event.startNs, 100);
    EXPECT_EQ(found[0].event.durNs, 800);
}

const Lane* laneOf(const RankTracks& tracks, LaneKind kind) {
    for (const Lane& lane : tracks.lanes)
        if (lane.kind == kind) return &lane;
    return nullptr;
}

TEST(DeviceLanes, OfARunHaveItsRangesAndItsIdleTimesByCause) {
    const test::SmallRun run(
        "INSERT INTO idle_gap VALUES (1, 0, 0, 200000, 50000, 'late_launch'), (2, 0, 0, 600000, 90000, 'input'), "
        "(3, 1, 0, 200000, 100000, 'of tomorrow')");
    const auto info = run.info();
    const std::vector<RankTracksPtr> tracks = run.tracks(*info);
    const Lane* ranges = laneOf(*tracks[0], LaneKind::deviceRanges);
    ASSERT_TRUE(ranges);
    EXPECT_EQ(ranges->label, "NVTX on the device, main");
    const Track& projected = ranges->parts[0].track;
    ASSERT_EQ(projected.size(), 1u);
    EXPECT_EQ(eventName(*info, EventTable::nvtxOnDevice, projected.event(0)), "forward");
    EXPECT_EQ(projected.startNs(0), 100 * test::kUs);  // of the first GEMM, to the end of the all-reduce
    EXPECT_EQ(projected.endNs(0), 600 * test::kUs);

    const Lane* idle = laneOf(*tracks[0], LaneKind::idle);
    ASSERT_TRUE(idle);
    ASSERT_EQ(idle->parts[0].track.size(), 2u);
    EXPECT_EQ(eventName(*info, EventTable::idleGap, idle->parts[0].track.event(0)), "idle: the host launches late");
    EXPECT_EQ(eventName(*info, EventTable::idleGap, idle->parts[0].track.event(1)), "idle: the host waits for input");
    EXPECT_EQ(idle->parts[0].track.rowId(1), 2);
    const Track& other = laneOf(*tracks[1], LaneKind::idle)->parts[0].track;
    EXPECT_EQ(eventName(*info, EventTable::idleGap, other.event(0)), "idle: of unknown cause");
    EXPECT_EQ(other.durNs(0), 100 * test::kUs);
}

TEST(DeviceLanes, AreNotThereWhereNothingTellsThem) {
    const test::SmallRun run("UPDATE kernel SET correlation_id = NULL; UPDATE memcpy SET correlation_id = NULL");
    const auto info = run.info();
    const std::vector<RankTracksPtr> tracks = run.tracks(*info);
    EXPECT_FALSE(laneOf(*tracks[0], LaneKind::deviceRanges));
    EXPECT_FALSE(laneOf(*tracks[0], LaneKind::idle));
}

}  // namespace
}  // namespace rankscope::gui
