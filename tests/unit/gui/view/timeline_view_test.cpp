// SPDX-License-Identifier: Apache-2.0
#include "gui/view/timeline_view.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QMouseEvent>

#include "analyzer/facts/rank_summary.h"

namespace rankscope::gui {
namespace {

constexpr int64_t kRunNs = 1'000'000;

// A rank whose device computes in the first half of the run and then stands still for the host.
RankTracksPtr halfBusy(bool isAnalysed) {
    auto tracks = std::make_shared<RankTracks>();
    tracks->rank = 0;
    const auto add = [&](LaneKind kind, const char* label, EventTable table, TrackEvent event) {
        Track track(1);
        track.add(event);
        track.finish();
        Lane lane{kind, label, {}, {}};
        lane.parts.push_back({table, std::move(track)});
        tracks->lanes.push_back(std::move(lane));
    };
    if (isAnalysed)
        add(LaneKind::idle, "idle", EventTable::idleGap,
            {kRunNs / 2, kRunNs / 2, static_cast<uint32_t>(facts::IdleCause::lateLaunch), 0, EventKind::idle});
    add(LaneKind::stream, "stream 7 compute", EventTable::kernel, {0, kRunNs / 2, 0, 0, EventKind::compute});
    const auto device = tracks->deviceTracks();
    tracks->activity = ActivityBins(device, device.front()->extent());
    return tracks;
}

class TimelineViewTest : public testing::Test {
  protected:
    void open(bool isAnalysed, std::vector<PathStretch> path = {}) {
        auto run = std::make_shared<RunInfo>();
        run->path = std::move(path);
        run->strings = {"", "gemm"};
        run->whole = {0, kRunNs};
        run->outline.hosts = {{0, "host"}};
        run->outline.ranks.push_back({0, 0, "rank 0", {}});
        m_view.resize(900, 400);
        m_model.setRun(run);
        m_model.addTracks(halfBusy(isAnalysed));
        m_model.setWidth(m_view.width() - m_view.labelWidth() - m_view.scrollBarWidth());
        m_model.show({0, kRunNs});
    }

    void clickOnRanksLine(int64_t timeNs) {
        const Row* line = LaneTree::summaryRow(m_model.lanes().rows(), 0);
        ASSERT_TRUE(line);
        const QPointF place(m_view.labelWidth() + m_model.axis().xOf(timeNs),
                            m_view.rowsTop() + line->top + line->height / 2.0);
        for (const auto type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
            QMouseEvent event(type, place, place, Qt::LeftButton, Qt::LeftButton, Qt::NoModifier);
            QApplication::sendEvent(&m_view, &event);
        }
    }

    TimelineModel m_model;
    TimelineView m_view{m_model};
};

TEST_F(TimelineViewTest, AClickOnAGapOfARanksLineSelectsTheIdlenessWithItsCause) {
    open(true);
    clickOnRanksLine(kRunNs * 3 / 4);
    ASSERT_TRUE(m_model.selection().valid());
    EXPECT_EQ(m_model.table(m_model.selection()), EventTable::idleGap);
    EXPECT_EQ(m_model.event(m_model.selection()).name, static_cast<uint32_t>(facts::IdleCause::lateLaunch));
    EXPECT_FALSE(m_view.areaOf(m_model.selection()).isNull()) << "it is framed on the rank's line";
}

TEST_F(TimelineViewTest, AClickWhereTheDeviceWorksSelectsNoGap) {
    open(true);
    clickOnRanksLine(kRunNs / 4);
    EXPECT_FALSE(m_model.selection().valid());
}

TEST_F(TimelineViewTest, WithoutAnAnalysisAGapHasNothingToTell) {
    open(false);
    clickOnRanksLine(kRunNs * 3 / 4);
    EXPECT_FALSE(m_model.selection().valid());
}

TEST_F(TimelineViewTest, TheCriticalPathIsDrawnWhereItIsOnTheRankAndCanBeHidden) {
    open(true, {{1, {0, kRunNs / 4}}, {0, {kRunNs / 4, kRunNs / 2}}, {1, {kRunNs / 2, kRunNs}}});
    const auto isInkAt = [&](int64_t timeNs) {
        const Row* line = LaneTree::summaryRow(m_model.lanes().rows(), 0);
        const QPoint place(m_view.labelWidth() + static_cast<int>(m_model.axis().xOf(timeNs)),
                           m_view.rowsTop() + line->top + line->height - 3);
        return m_view.grab().toImage().pixel(place) == Palette::light().text;
    };
    EXPECT_FALSE(isInkAt(kRunNs / 8));
    EXPECT_TRUE(isInkAt(kRunNs * 3 / 8));
    EXPECT_FALSE(isInkAt(kRunNs * 5 / 8));
    m_model.show({kRunNs * 3 / 8, kRunNs / 2 - 1});
    EXPECT_TRUE(isInkAt(kRunNs * 7 / 16)) << "a stretch that begins before the picture is in it";
    m_view.showPath(false);
    EXPECT_FALSE(isInkAt(kRunNs * 7 / 16));
}

TEST_F(TimelineViewTest, APlaceThatIsTypedIsShownAndWhatCannotBeIsSaid) {
    open(true);
    EXPECT_EQ(m_model.goToPlace("200 us to 300 us"), QString());
    EXPECT_EQ(m_model.axis().visible(), (TimeRange{200'000, 300'000}));
    EXPECT_EQ(m_model.goToPlace("1 s"), QString("the run ends at 1.00 ms"));
    EXPECT_EQ(m_model.axis().visible(), (TimeRange{200'000, 300'000}));
}

}  // namespace
}  // namespace rankscope::gui
