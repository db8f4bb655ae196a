// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/overview.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

constexpr double kBin = 0.03;  // shares are exact to a bin of the level that is looked at
constexpr size_t kCompute = static_cast<size_t>(Activity::compute);

// A rank that computes in [from, to).
RankTracks busy(int64_t from, int64_t to) {
    Track track;
    track.add({from, to - from, 1, 0, EventKind::compute});
    track.finish();
    RankTracks rank;
    rank.lanes.push_back({LaneKind::stream, "stream 7 compute", {}});
    rank.lanes.back().parts.push_back({EventTable::kernel, std::move(track)});
    const auto device = rank.deviceTracks();
    rank.activity = ActivityBins(device, {from, to});
    return rank;
}

TEST(Overview, ShowsTheMeanOfAllRanksColumnByColumn) {
    const RankTracks early = busy(0, 500'000), late = busy(300'000, 500'000);
    Overview overview({0, 1'000'000}, 10);
    overview.add(early.activityView());
    overview.add(late.activityView());
    EXPECT_EQ(overview.ranks(), 2u);
    EXPECT_NEAR(overview.column(0)[kCompute], 0.5, kBin);
    EXPECT_NEAR(overview.column(4)[kCompute], 1.0, kBin);
    EXPECT_NEAR(overview.column(6)[kCompute], 0.0, kBin);
}

TEST(Overview, RanksWithoutEventsCountAsIdle) {
    const RankTracks whole = busy(0, 1'000'000), none;
    Overview overview({0, 1'000'000}, 4);
    overview.add(whole.activityView());
    overview.add(none.activityView());
    overview.add({});  // of which nothing is known
    EXPECT_EQ(overview.ranks(), 2u);
    EXPECT_NEAR(overview.column(2)[kCompute], 0.5, kBin);
}

TEST(Overview, NothingAddedIsNothingShown) {
    EXPECT_EQ(Overview().columns(), 0u);
    EXPECT_EQ(Overview({0, 10}, 3).column(1)[kCompute], 0.0f);
    EXPECT_EQ(Overview({0, 10}, 3).column(99)[kCompute], 0.0f);
}

TEST(CentredAt, MovesButDoesNotResizeAndStaysInside) {
    EXPECT_EQ(centredAt({100, 200}, 500, {0, 1000}), (TimeRange{450, 550}));
    EXPECT_EQ(centredAt({100, 200}, 10, {0, 1000}), (TimeRange{0, 100}));
    EXPECT_EQ(centredAt({100, 200}, 990, {0, 1000}), (TimeRange{900, 1000}));
    EXPECT_EQ(centredAt({-500, 5000}, 3, {0, 1000}), (TimeRange{0, 1000}));
}

}  // namespace
}  // namespace rankscope::gui
