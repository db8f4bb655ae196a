// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_agreement.h"

#include <gtest/gtest.h>

namespace rankscope::collector {
namespace {

/// Two ranks that meet once in each of their steps, in the middle; a step takes 100 ns.
struct Meetings {
    std::vector<RankSummary> summaries{2};
    RankMarks marks{2};
    InstanceGroups collectives;
    std::vector<MessagePair> messages;

    explicit Meetings(int steps) {
        for (int32_t s = 0; s < 2; ++s) {
            summaries[static_cast<size_t>(s)].computes = true;
            for (int step = 0; step < steps; ++step) {
                CallFact call;
                call.hostStartNs = call.arrivalNs = step * 100 + 50;
                summaries[static_cast<size_t>(s)].calls.push_back(call);
            }
            for (int step = 0; step <= steps; ++step) marks[static_cast<size_t>(s)].push_back({step * 100, step * 100});
        }
        for (int step = 0; step < steps; ++step) {
            const size_t first = collectives.calls.size();
            for (int32_t s = 0; s < 2; ++s) collectives.calls.push_back({0, step, s, step});
            collectives.groups.push_back({first, first + 2});
        }
    }
    RankMarks agreed() const { return agreeingMarks(summaries, marks, {collectives, messages}); }
};

int64_t firstOf(const RankMarks& marks, size_t rank) {
    return marks.at(rank).front().hostNs;
}

TEST(StepAgreement, RanksThatMeetInTheSameStepsKeepTheirMarks) {
    const Meetings meetings(6);
    EXPECT_EQ(meetings.agreed().at(0).size(), 7u);
    EXPECT_EQ(meetings.agreed().at(1).size(), 7u);
}

TEST(StepAgreement, ARankWhoseFirstStepIsNotSeenTakesItFromItsPeers) {
    Meetings meetings(6);
    meetings.marks[1].erase(meetings.marks[1].begin());
    const RankMarks agreed = meetings.agreed();
    ASSERT_EQ(agreed.size(), 2u);
    EXPECT_EQ(firstOf(agreed, 0), 100);
    EXPECT_EQ(firstOf(agreed, 1), 100);
}

TEST(StepAgreement, ARankWhoseLastStepIsNotSeenTakesItFromItsPeers) {
    Meetings meetings(6);
    meetings.marks[1].pop_back();
    const RankMarks agreed = meetings.agreed();
    ASSERT_EQ(agreed.size(), 2u);
    EXPECT_EQ(firstOf(agreed, 0), 0);
    EXPECT_EQ(agreed[0].size(), 6u);
}

// A part of a job: all ranks are cut at one time, which one of them reached a step later, and end in the same step.
TEST(StepAgreement, RanksOfAPartOfAJobBeginWithTheStepThatTheLastOfThemBeginsWith) {
    for (const bool isOtherLonger : {false, true}) {
        Meetings meetings(12);
        for (RankSummary& summary : meetings.summaries) summary.state = store::RankState::died;
        meetings.marks[0].erase(meetings.marks[0].begin(), meetings.marks[0].begin() + 2);
        meetings.marks[1].erase(meetings.marks[1].begin(), meetings.marks[1].begin() + 3);
        meetings.marks[isOtherLonger ? 0 : 1].pop_back();
        const RankMarks agreed = meetings.agreed();
        ASSERT_EQ(agreed.size(), 2u);
        EXPECT_EQ(firstOf(agreed, 0), 300);
        EXPECT_EQ(firstOf(agreed, 1), 300);
        EXPECT_EQ(agreed[0].size(), agreed[1].size());
    }
}

TEST(StepAgreement, ARankThatWasCutKeepsWhatItHas) {
    Meetings meetings(6);
    meetings.summaries[1].state = store::RankState::died;
    meetings.marks[1].resize(4);
    const RankMarks agreed = meetings.agreed();
    ASSERT_EQ(agreed.size(), 2u);
    EXPECT_EQ(agreed[0].size(), 7u);
    EXPECT_EQ(agreed[1].size(), 4u);
}

TEST(StepAgreement, MarksThatContradictEachOtherMarkNoSteps) {
    Meetings meetings(6);
    for (StepMark& mark : meetings.marks[1]) mark.hostNs = mark.deviceNs = mark.hostNs * 2;
    EXPECT_TRUE(meetings.agreed().empty());
}

TEST(StepAgreement, NoMarksWhereOneRankOfTheWholeHasNone) {
    Meetings meetings(6);
    meetings.marks[1].clear();
    EXPECT_TRUE(meetings.agreed().empty());
}

TEST(StepAgreement, EitherSideOfACallTellsItsStep) {
    Meetings meetings(6);
    // Calls that were made up from kernels begin when these do: behind the mark on one rank's host.
    for (CallFact& call : meetings.summaries[1].calls) call.hostStartNs += 60;
    EXPECT_FALSE(meetings.agreed().empty());
}

TEST(StepAgreement, MessagesTellLikeCollectives) {
    Meetings meetings(6);
    meetings.collectives = {};
    for (int32_t step = 0; step < 6; ++step) meetings.messages.push_back({0, 0, 1, step, 0, step, 1, step});
    EXPECT_FALSE(meetings.agreed().empty());
    for (StepMark& mark : meetings.marks[1]) mark.hostNs = mark.deviceNs = mark.hostNs * 2;
    EXPECT_TRUE(meetings.agreed().empty());
}

}  // namespace
}  // namespace rankscope::collector
