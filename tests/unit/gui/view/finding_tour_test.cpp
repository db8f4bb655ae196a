// SPDX-License-Identifier: Apache-2.0
#include "gui/findings/finding_tour.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

constexpr int32_t kManyRanks = 256;
constexpr int32_t kOtherShown = 5;                    // whose compute the second evidence is
constexpr uint32_t kCompute = 1, kCommunication = 2;  // lanes of each rank

Lane laneOf(LaneKind kind, const char* label, EventTable table, std::vector<TrackEvent> events) {
    Track track(1);
    for (const TrackEvent& event : events) track.add(event);
    track.finish();
    Lane made{kind, label, {}, {}};
    made.parts.push_back({table, std::move(track)});
    return made;
}

RankTracksPtr fourLanesOf(int32_t rank) {
    auto tracks = std::make_shared<RankTracks>();
    tracks->rank = rank;
    tracks->lanes.push_back(
        laneOf(LaneKind::hostCalls, "calls", EventTable::apiCall, {{0, 900, 0, 0, EventKind::api}}));
    tracks->lanes.push_back(
        laneOf(LaneKind::stream, "stream 7", EventTable::kernel, {{100, 300, 0, 0, EventKind::compute}}));
    tracks->lanes.push_back(
        laneOf(LaneKind::stream, "stream 9", EventTable::kernel, {{400, 200, 0, 1, EventKind::communication}}));
    tracks->lanes.push_back(
        laneOf(LaneKind::stream, "stream 11", EventTable::memcpy, {{5000, 10, 0, 0, EventKind::copy}}));
    return tracks;
}

// A run of many ranks with one finding, whose evidence is the communication of `shownOn`.
class FindingTourTest : public testing::Test {
  protected:
    void open(std::vector<int32_t> toFix, const std::vector<int32_t>& affected, int32_t shownOn, bool load = true) {
        auto run = std::make_shared<RunInfo>();
        run->outline.hosts = {{0, "host"}};
        run->whole = {0, 6000};
        for (int32_t rank = 0; rank < kManyRanks; ++rank) {
            run->outline.ranks.push_back({rank, 0, "rank " + std::to_string(rank)});
            run->steps.push_back({rank, 0, {0, 1000}, false});
        }
        FindingInfo finding;
        finding.id = 1;
        finding.diagnosis = "RS301";
        finding.ranks = std::move(toFix);
        finding.affectedRanks = affected;
        finding.window = m_window;
        EvidenceLink link{"collective", 1, shownOn, "waits", {EventTable::kernel, 2, shownOn}, {}};
        finding.evidence.push_back(link);
        finding.evidence.insert(finding.evidence.end(), m_moreEvidence.begin(), m_moreEvidence.end());
        run->findings.push_back(finding);
        m_model.setRun(run);
        m_model.setWidth(1000);
        for (int32_t rank = 0; load && rank < kManyRanks; ++rank) m_model.addTracks(fourLanesOf(rank));
    }

    std::vector<int32_t> ranksSideBySide() const {
        std::vector<int32_t> ranks;
        for (const RankExcerpt& excerpt : m_model.lanes().excerpts()) ranks.push_back(excerpt.rank);
        return ranks;
    }

    std::vector<EvidenceLink> m_moreEvidence;  // of the finding, behind the first
    std::optional<TimeRange> m_window;
    TimelineModel m_model;
    FindingTour m_tour{m_model};
};

TEST_F(FindingTourTest, TheRankToFixAndOneThatWaitsAreSideBySideHoweverManyThereAre) {
    open({200}, {0, 1, 5}, 5);
    const LaneChoices chosen = m_model.lanes().choices();
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{200, 5}));
    EXPECT_EQ(m_model.lanes().choices(), chosen) << "what the user chose to see stays as it is";
    EXPECT_EQ(m_model.selection().rank, 5);
    m_tour.leave();
    EXPECT_TRUE(ranksSideBySide().empty());
}

TEST_F(FindingTourTest, WhereTheEvidenceIsOnTheRankToFixOneThatItAffectsStandsBesideIt) {
    open({200}, {17, 18}, 200);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{200, 17}));
}

TEST_F(FindingTourTest, OfSeveralRanksToFixOneStandsBesideOneThatWaits) {
    open({200, 201}, {200, 17}, 201);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{200, 17}));
}

TEST_F(FindingTourTest, WhichRankStandsBesideTheOneToFixDoesNotDependOnWhichIsLoadedFirst) {
    open({200, 201}, {200, 17, 18}, 201, false);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    for (const int32_t rank : {201, 18, 200}) m_model.addTracks(fourLanesOf(rank));
    EXPECT_TRUE(ranksSideBySide().empty()) << "rank 17 is to come";
    m_model.addTracks(fourLanesOf(17));
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{200, 17}));
}

TEST_F(FindingTourTest, WhereAllRanksAreToBeFixedTheOneThatShowsItIsSeen) {
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < kManyRanks; ++rank) all.push_back(rank);
    open(all, {}, 99);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{99}));
}

TEST_F(FindingTourTest, WhereAllRanksAreToBeFixedTwoAreSeenWhicheverIsLoadedFirst) {
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < kManyRanks; ++rank) all.push_back(rank);
    open(all, all, 99, false);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    for (const int32_t rank : {99, 3}) m_model.addTracks(fourLanesOf(rank));
    EXPECT_TRUE(ranksSideBySide().empty()) << "rank 0 is to come";
    m_model.addTracks(fourLanesOf(0));
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{99, 0}));
}

TEST_F(FindingTourTest, WhatCannotBeLoadedIsNotWaitedForWhenLoadingHasEnded) {
    open({200}, {17, 18}, 18, false);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    m_model.addTracks(fourLanesOf(17));
    m_tour.loadingEnded();
    EXPECT_EQ(ranksSideBySide(), (std::vector<int32_t>{17}));
}

TEST_F(FindingTourTest, AnEntryThatIsClickedBeforeItsRankIsLoadedIsGoneToWhenItIs) {
    m_moreEvidence = {{"kernel", 1, 5, "computes", {EventTable::kernel, 1, 5}, {}}};
    open({200}, {17}, 17, false);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_TRUE(m_tour.goToEvidence(1));
    EXPECT_FALSE(m_tour.goToEvidence(2)) << "there are two";
    EXPECT_FALSE(m_model.selection().valid());
    for (const int32_t rank : {200, 17, 5}) m_model.addTracks(fourLanesOf(rank));
    EXPECT_EQ(m_model.selection(), (EventRef{5, kCompute, 0, 0}));
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(m_model.selection(), (EventRef{17, kCommunication, 0, 0})) << "the next visit begins with the first";
}

TEST_F(FindingTourTest, TheTimeThatTheReportNamesIsShownWhereTheEvidenceBeginsInIt) {
    m_window = {{0, 600}};  // of the rank to fix; the one that waits ends its step at 1000
    open({200}, {5}, 5);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(m_model.axis().visible().span(), 660) << "and a margin on both sides";
    ASSERT_TRUE(m_tour.goToEvidence(0));
    EXPECT_EQ(m_model.axis().visible().span(), 660);
}

TEST_F(FindingTourTest, EvidenceOutsideOfTheTimeThatTheReportNamesIsShownInItsOwnStep) {
    m_window = {{2000, 3000}};
    open({200}, {5}, 5);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    EXPECT_EQ(m_model.axis().visible().span(), 1100);
}

TEST_F(FindingTourTest, AnExcerptHasTheStreamsThatAreBusyInTheStepShown) {
    open({200}, {5}, 5);
    ASSERT_TRUE(m_tour.goTo("RS301"));
    for (const RankExcerpt& excerpt : m_model.lanes().excerpts())
        EXPECT_EQ(excerpt.lanes, (std::vector<uint32_t>{kCompute, kCommunication}));
}

}  // namespace
}  // namespace rankscope::gui
