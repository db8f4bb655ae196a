// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/track.h"

#include <gtest/gtest.h>

#include <random>

namespace rankscope::gui {
namespace {

Track trackOf(std::initializer_list<std::pair<int64_t, int64_t>> startsAndDurations) {
    Track track(100);
    uint32_t row = 0;
    for (const auto& [start, duration] : startsAndDurations) track.add({start, duration, 7, row++, EventKind::compute});
    track.finish();
    return track;
}

TEST(Track, FindsTheFirstThatEndsAfterATime) {
    const Track track = trackOf({{10, 5}, {20, 10}, {30, 1}});
    EXPECT_EQ(track.firstEndingAfter(0), 0u);
    EXPECT_EQ(track.firstEndingAfter(14), 0u);
    EXPECT_EQ(track.firstEndingAfter(15), 1u);
    EXPECT_EQ(track.firstEndingAfter(29), 1u);
    EXPECT_EQ(track.firstEndingAfter(30), 2u);
    EXPECT_EQ(track.firstEndingAfter(31), track.size());
}

TEST(Track, KeepsDurationsThatDoNotFitIn32Bits) {
    const Track track = trackOf({{0, 5'000'000'000}, {6'000'000'000, 4'294'967'295}, {20'000'000'000, 4'294'967'294}});
    EXPECT_EQ(track.durNs(0), 5'000'000'000);
    EXPECT_EQ(track.durNs(1), 4'294'967'295);
    EXPECT_EQ(track.durNs(2), 4'294'967'294);
    EXPECT_EQ(track.firstEndingAfter(4'999'999'999), 0u);
}

TEST(Track, AnEventWaitsNoLongerThanItLasts) {
    Track track;
    track.add({0, 10, 0, 0, EventKind::communication});
    track.add({20, 10, 0, 1, EventKind::communication, 4});
    track.add({40, 10, 0, 2, EventKind::communication, 99});
    track.add({45, 10, 0, 3, EventKind::communication, 10});
    track.finish();
    EXPECT_EQ(track.waitNs(0), 0);
    EXPECT_EQ(track.waitNs(1), 4);
    EXPECT_EQ(track.waitNs(2), 10);
    EXPECT_EQ(track.waitNs(3), 5) << "half of it is below the one before";
}

TEST(Track, KnowsItsRows) {
    Track track(1'000);
    track.add({0, 1, 0, 3, EventKind::api});
    track.add({5, 1, 0, 9, EventKind::api});
    track.finish();
    EXPECT_EQ(track.rowId(1), 1'009);
    EXPECT_EQ(track.findRow(1'003), 0u);
    EXPECT_EQ(track.findRow(1'004), track.size());
    EXPECT_EQ(track.findRow(2), track.size());
}

TEST(Track, OverlapsAreCutSoThatItStaysSearchable) {
    const Track track = trackOf({{0, 100}, {50, 100}, {60, 10}});
    EXPECT_EQ(track.startNs(1), 100);
    EXPECT_EQ(track.endNs(1), 150);
    EXPECT_EQ(track.durNs(2), 0);
    EXPECT_EQ(track.firstEndingAfter(149), 1u);
}

TEST(Track, EveryLevelOfThePyramidHoldsTheWholeTime) {
    std::mt19937 random(1);
    Track track;
    int64_t now = 0, busy = 0, waiting = 0;
    for (uint32_t i = 0; i < 10'000; ++i) {
        const int64_t duration = random() % 500, wait = i % 3 == 0 ? duration / 2 : 0;
        track.add({now, duration, i, i, EventKind::communication, wait});
        busy += duration;
        waiting += wait;
        now += duration + random() % 300;
    }
    track.finish();
    ASSERT_GE(track.levels(), 4u);
    for (size_t level = 0; level < track.levels(); ++level) {
        double sum = 0, waits = 0;
        int64_t last = -1;
        for (const PyramidNode& node : track.level(level)) {
            EXPECT_GE(node.startNs, last);
            last = node.endNs();
            const auto span = static_cast<double>(node.spanNs);
            sum += span * static_cast<double>(node.busy);
            waits += span * static_cast<double>(node.waiting);
        }
        EXPECT_NEAR(sum / static_cast<double>(busy), 1, 1e-6) << level;
        EXPECT_NEAR(waits / static_cast<double>(waiting), 1, 1e-6) << level;
        EXPECT_EQ(last, track.extent().endNs) << level;
    }
}

// A minute and more, of which a float holds no single nanoseconds.
TEST(Track, NodesKnowTheirLongestEventAndEndNoEarlierThanTheirLastOne) {
    std::mt19937 random(2);
    Track track;
    int64_t now = 1'000'000'007;
    for (uint32_t i = 0; i < 30'000; ++i) {
        const int64_t duration = i % 1'000 == 77 ? 1'000'000'000 + random() % 4'000'000'000 : random() % 3'000;
        track.add({now, duration, i, i, EventKind::compute});
        now += duration + random() % 3'000'000;
    }
    track.finish();
    ASSERT_GE(track.levels(), 5u);
    size_t below = Track::kFan;
    for (size_t level = 0; level < track.levels(); ++level, below *= Track::kFan) {
        for (size_t i = 0; i < track.level(level).size(); ++i) {
            const PyramidNode& node = track.level(level)[i];
            const size_t first = i * below, last = std::min(track.size(), first + below);
            EXPECT_EQ(node.startNs, track.startNs(first));
            EXPECT_GE(node.endNs(), track.endNs(last - 1));
            EXPECT_LE(node.endNs(), track.endNs(last - 1) + 1 + (node.endNs() - node.startNs) / 4'000'000);
            size_t longest = first;
            for (size_t event = first; event < last; ++event)
                if (track.durNs(event) > track.durNs(longest)) longest = event;
            EXPECT_EQ(node.longestNs, std::min<int64_t>(track.durNs(longest), PyramidNode::kWideNs));
            if (node.longestNs == PyramidNode::kWideNs) continue;  // another may be as wide
            EXPECT_EQ(node.longestStyle, track.style(longest));
            EXPECT_EQ(first + node.longest, longest);
            EXPECT_NEAR(static_cast<double>(node.spanNs) * node.longestAt / 65'535,
                        static_cast<double>(track.startNs(longest) - node.startNs),
                        static_cast<double>(node.spanNs) / 65'535);
        }
    }
}

TEST(TrackStack, PutsNestedRangesOneTrackDeeper) {
    TrackStack stack(0, 8);
    stack.add({0, 100, 1, 0, EventKind::nvtx});
    stack.add({10, 20, 2, 1, EventKind::nvtx});
    stack.add({12, 5, 3, 2, EventKind::nvtx});
    stack.add({40, 60, 4, 3, EventKind::nvtx});
    stack.add({100, 10, 5, 4, EventKind::nvtx});
    const std::vector<Track> tracks = stack.finish();
    ASSERT_EQ(tracks.size(), 3u);
    EXPECT_EQ(tracks[0].size(), 2u);
    EXPECT_EQ(tracks[1].size(), 2u);
    EXPECT_EQ(tracks[2].name(0), 3u);
}

TEST(TrackStack, KeepsWhatIsNestedTooDeeplyApart) {
    TrackStack stack(0, 2);
    for (int i = 0; i < 5; ++i) stack.add({i, 100 - 2 * i, 0, static_cast<uint32_t>(i), EventKind::nvtx});
    EXPECT_EQ(stack.finish().size(), 2u);
    const std::vector<TrackEvent> leftOut = stack.takeLeftOut();
    ASSERT_EQ(leftOut.size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(leftOut[i].row, 2 + i);
}

}  // namespace
}  // namespace rankscope::gui
