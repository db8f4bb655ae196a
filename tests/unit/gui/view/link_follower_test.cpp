// SPDX-License-Identifier: Apache-2.0
#include "gui/pane/link_follower.h"

#include <gtest/gtest.h>

#include <QCoreApplication>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

// The session has read the whole file; the model is given one rank after the other.
class LinkFollowerTest : public testing::Test {
  protected:
    void SetUp() override {
        m_session.open(m_small.folder.file().string(), {});
        while (m_session.isLoading()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        m_model.setRun(m_info);
        m_model.addTracks(m_tracks[0]);
    }

    EventRef allReduceOf(int32_t rank) const { return m_model.find(EventTable::kernel, 3 * rank + 3, rank); }
    void untilAnswered() {
        while (m_session.isAsking()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    }

    const test::SmallRun m_small;
    const std::shared_ptr<const RunInfo> m_info = m_small.info();
    const std::vector<RankTracksPtr> m_tracks = m_small.tracks(*m_info);
    TimelineModel m_all, m_model;
    RunSession m_session{m_all};
    LinkFollower m_follower{m_model, m_session};
};

TEST_F(LinkFollowerTest, MembersOfACollectiveWhoseRanksArriveAfterTheAnswerAreFramedWhenTheyDo) {
    m_model.select(allReduceOf(0));
    untilAnswered();
    EXPECT_TRUE(m_model.related().empty()) << "rank 1 is to come";
    m_model.addTracks(m_tracks[1]);
    EXPECT_EQ(m_model.related(), (std::vector<EventRef>{allReduceOf(1)}));
    const auto isFromLast = [&](const FlowLine& flow) {
        return flow.from == allReduceOf(1) && flow.to == allReduceOf(0);
    };
    EXPECT_EQ(std::ranges::count_if(m_model.flows(), isFromLast), 1) << "rank 1 came last";
}

TEST_F(LinkFollowerTest, WhatArrivesAfterTheSelectionIsGoneFramesNothing) {
    m_model.select(allReduceOf(0));
    untilAnswered();
    m_model.select({});
    m_model.addTracks(m_tracks[1]);
    EXPECT_TRUE(m_model.related().empty());
    EXPECT_TRUE(m_model.flows().empty());
}

}  // namespace
}  // namespace rankscope::gui
