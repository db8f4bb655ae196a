// SPDX-License-Identifier: Apache-2.0
#include "gui/view/lane_canvas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rankscope::gui {
namespace {

constexpr int32_t kRanks = 6;

// Ranks with two streams each, events of 10 to 40,000 ns, names of many lengths.
class LaneCanvasTest : public testing::Test {
  protected:
    void SetUp() override {
        auto run = std::make_shared<RunInfo>();
        for (int i = 0; i < 50; ++i)
            run->strings.push_back("kernel " + std::string(static_cast<size_t>(i), 'x') + std::to_string(i));
        run->strings[7] = "\u05e9\u05dc\u05d5\u05dd \u202e<b>bold</b>\n\t\u0001";
        run->strings[8] = std::string(100'000, 'y');
        run->outline.hosts = {{0, "host"}};
        for (int32_t rank = 0; rank < kRanks; ++rank)
            run->outline.ranks.push_back({rank, 0, "rank " + std::to_string(rank)});
        m_model.setRun(run);
        for (int32_t rank = 0; rank < kRanks; ++rank) m_model.addTracks(tracksOf(rank));
        m_model.changeLanes([](LaneTree& lanes) { lanes.setAllExpanded(true); });
        m_model.setWidth(kSize.width());
    }

    static RankTracksPtr tracksOf(int32_t rank) {
        auto tracks = std::make_shared<RankTracks>();
        tracks->rank = rank;
        for (int lane = 0; lane < 2; ++lane) {
            std::mt19937 random(static_cast<unsigned>(rank * 2 + lane));
            Track track(1);
            int64_t now = 0;
            for (uint32_t i = 0; i < 20'000; ++i) {
                const int64_t duration = 10 + random() % (random() % 100 == 0 ? 40'000 : 400);
                track.add({now, duration, static_cast<uint32_t>(random() % 50), i,
                           lane == 0 ? EventKind::compute : EventKind::communication});
                now += duration + random() % 300;
            }
            track.finish();
            Lane made{LaneKind::stream, "stream " + std::to_string(lane), {}};
            made.parts.push_back({EventTable::kernel, std::move(track)});
            tracks->lanes.push_back(std::move(made));
        }
        const auto device = tracks->deviceTracks();
        tracks->activity = ActivityBins(device, device.front()->extent());
        return tracks;
    }

    /// How many pixels of the picture have this colour.
    static int64_t pixelsOf(const QImage& image, Rgb colour) {
        int64_t pixels = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) pixels += image.pixel(x, y) == colour;
        return pixels;
    }

    QImage paintOn(LaneCanvas& canvas, double ratio, const Palette& palette = Palette::light()) const {
        return canvas.paint(m_model, m_model.lanes().rows(), m_scrollTop, kSize, ratio, palette).copy();
    }

    static constexpr QSize kSize{900, 260};
    TimelineModel m_model;
    int m_scrollTop = 0;
};

TEST_F(LaneCanvasTest, ThePictureIsTheSameWithAnyNumberOfThreads) {
    LaneCanvas alone(1), two(2), many(5);
    const TimeRange whole = m_model.axis().whole();
    for (const double ratio : {1.0, 1.5}) {
        for (int64_t span = whole.span(); span > 100; span /= 9) {
            m_scrollTop = (m_scrollTop + 13) % 90;
            m_model.show({whole.span() / 3, whole.span() / 3 + span});
            const QImage picture = paintOn(alone, ratio);
            EXPECT_EQ(picture, paintOn(two, ratio)) << span;
            EXPECT_EQ(picture, paintOn(many, ratio)) << span;
        }
    }
}

TEST_F(LaneCanvasTest, APictureDoesNotDependOnTheOnesBefore) {
    LaneCanvas used(3);
    const TimeRange whole = m_model.axis().whole();
    for (const Palette* palette : {&Palette::dark(), &Palette::light()}) {
        for (const int64_t share : {1, 900, 40, 9'000}) {
            m_model.show({whole.span() / 2, whole.span() / 2 + whole.span() / share});
            LaneCanvas fresh(1);
            EXPECT_EQ(paintOn(used, 1, *palette), paintOn(fresh, 1, *palette)) << share;
        }
    }
}

TEST_F(LaneCanvasTest, AGroupThatIsCollapsedShowsWhatItsRanksDo) {
    m_model.changeLanes([](LaneTree& lanes) { lanes.toggleGroup(0); });
    ASSERT_EQ(m_model.lanes().rows().size(), 1u);
    LaneCanvas canvas(1);
    const QImage picture = paintOn(canvas, 1);
    const auto drawn = [&](Activity activity) {
        size_t pixels = 0;
        for (int y = 0; y < m_model.lanes().height(); ++y)
            for (int x = 0; x < picture.width(); ++x)
                pixels += picture.pixel(x, y) == Palette::light().activities[static_cast<size_t>(activity)];
        return pixels;
    };
    EXPECT_GT(drawn(Activity::compute), 100u);
    EXPECT_GT(drawn(Activity::overlapped), 100u);
    EXPECT_GT(drawn(Activity::transfer), 100u);
}

TEST_F(LaneCanvasTest, LinesOfOnePixelShowWhatMostOfItsTimeIs) {
    m_model.changeLanes([](LaneTree& lanes) { lanes.setAllExpanded(false); });
    std::vector<Row> rows = m_model.lanes().rows();
    rows.erase(rows.begin());  // the host's
    int top = 0;
    for (Row& row : rows) {
        row.top = top++;
        row.height = 1;
    }
    LaneCanvas canvas(1);
    const QImage picture = canvas.paint(m_model, rows, 0, kSize, 1, Palette::light());
    const auto& activities = Palette::light().activities;
    for (int y = 0; y < kRanks; ++y) {
        int coloured = 0;
        for (int x = 0; x < picture.width(); ++x)
            coloured += std::find(activities.begin(), activities.end(), picture.pixel(x, y)) != activities.end();
        EXPECT_GT(coloured, picture.width() / 2) << y;
    }
}

TEST_F(LaneCanvasTest, ARankIsDrawnBeforeItsEventsAreLoaded) {
    const std::vector<std::array<uint8_t, kActivities>> transfers(64, {0, 0, 0, 255, 0});
    const Rgb transfer = Palette::light().activities[static_cast<size_t>(Activity::transfer)];
    auto run = std::make_shared<RunInfo>(*m_model.run());
    run->whole = {0, 64'000};
    LaneCanvas canvas(2);
    for (const bool isKnown : {false, true}) {
        std::map<int32_t, ActivityBins> lines;
        if (isKnown) lines.emplace(3, ActivityBins(0, 1'000, transfers));
        TimelineModel model;
        model.setRun(run, lines);
        model.setWidth(kSize.width());
        const auto paint = [&] {
            return pixelsOf(canvas.paint(model, model.lanes().rows(), 0, kSize, 1, Palette::light()), transfer);
        };
        EXPECT_EQ(paint() > kSize.width(), isKnown);
        model.changeLanes([](LaneTree& lanes) { lanes.toggleGroup(0); });
        EXPECT_EQ(paint() > kSize.width(), isKnown) << "a group of which one rank is known";
    }
}

TEST_F(LaneCanvasTest, NamesAreThereWhereThereIsRoomAndNeverLeaveTheirBoxes) {
    LaneCanvas canvas(1);
    const Track& track = m_model.lanes().tracks(0)->lanes[0].parts[0].track;
    size_t widest = 0;
    for (size_t i = 0; i < track.size(); ++i)
        if (track.durNs(i) > track.durNs(widest)) widest = i;
    const int64_t begin = track.startNs(widest), duration = track.durNs(widest);
    // The box from pixel 300 to 600.
    m_model.show({begin - duration, begin + 2 * duration});
    const QImage picture = paintOn(canvas, 1);
    const auto row = std::find_if(m_model.lanes().rows().begin(), m_model.lanes().rows().end(),
                                  [](const Row& r) { return r.kind == RowKind::lane && r.rank == 0 && r.lane == 0; });
    const Rgb fill = Palette::light().event(track.kind(widest), track.name(widest));
    size_t ink = 0;
    for (int y = row->top + 2; y < row->top + row->height - 2; ++y)
        for (int x = 303; x < 597; ++x) ink += picture.pixel(x, y) != fill;
    EXPECT_GT(ink, 30u);
    // Beside the name all lines of a lane are the same.
    for (int y = row->top + 2; y < row->top + row->height - 2; ++y)
        for (const int x : {301, 302, 598, 599}) EXPECT_EQ(picture.pixel(x, y), fill) << x << " " << y;
}

}  // namespace
}  // namespace rankscope::gui
