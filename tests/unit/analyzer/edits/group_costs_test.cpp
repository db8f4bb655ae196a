// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/group_costs.h"

#include <gtest/gtest.h>

#include <array>

#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {
namespace {

constexpr std::pair<bool, int> kSendBack{true, 1}, kReceiveAhead{false, 3}, kSendAhead{true, 3};

TEST(GroupTimes, AGroupTakesAsOftenTheTimeOfOneMessageAsOneDirectionHasThem) {
    GroupTimes times(30);
    times.add({kSendBack}, 80, false);
    EXPECT_EQ(times.aloneNs({kSendBack}), 80);
    EXPECT_EQ(times.aloneNs({kSendBack, kSendAhead}), 30 + 2 * 50);
    EXPECT_EQ(times.besideSumsNs({kSendBack}), 80);  // never seen to be longer
}

TEST(GroupTimes, WhatSumsOfGradientsHeldUpDoesNotPriceMessagesThatTravelAlone) {
    GroupTimes times(30);
    times.add({kSendAhead, kReceiveAhead}, 80, false);
    times.add({kReceiveAhead}, 130, true);  // one that shared the link all the time
    EXPECT_EQ(times.aloneNs({kReceiveAhead}), 80);
    EXPECT_EQ(times.aloneNs({kReceiveAhead, kSendBack}), 80);
    EXPECT_EQ(times.besideSumsNs({kReceiveAhead}), 130);
    EXPECT_EQ(times.besideSumsNs({kReceiveAhead, kSendBack}), 130);
    EXPECT_EQ(times.besideSumsNs({kSendBack}), times.aloneNs({kSendBack}));  // its link was not seen to be shared
}

TEST(GroupTimes, MessagesThatWereNeverAloneTakeWhatTheyTook) {
    GroupTimes times(30);
    times.add({kReceiveAhead}, 130, true);
    EXPECT_EQ(times.aloneNs({kReceiveAhead}), 130);
    EXPECT_EQ(times.besideSumsNs({kReceiveAhead}), 130);
    EXPECT_EQ(times.aloneNs({kSendBack}), 130);  // of another link nothing is known
}

TEST(CollectiveTimes, TouchingIsNotOverlapping) {
    replay::GraphDraft draft;
    const uint32_t lane = draft.addLane({0, false, 1});
    replay::TaskInfo info;
    info.lane = lane & replay::kNoLane;
    info.kind = replay::TaskKind::arrival;
    for (const int64_t leadNs : {100, 50}) {
        info.kind = replay::TaskKind::arrival;
        const replay::TaskId arrival = draft.addTask(info, 0, leadNs);
        info.kind = replay::TaskKind::transfer;
        const std::array<replay::ExchangeMember, 1> members{{{0, arrival, draft.addTask(info, 20)}}};
        replay::Exchange exchange;
        exchange.op = store::Op::allReduce;
        draft.addExchange(exchange, members);
    }
    const replay::TaskGraph graph = *std::move(draft).seal();
    const CollectiveTimes times(graph, replay::simulate(graph));  // 100 to 120, 170 to 190
    EXPECT_FALSE(times.any(0, 50, 100));
    EXPECT_TRUE(times.any(0, 50, 101));
    EXPECT_TRUE(times.any(0, 119, 150));
    EXPECT_FALSE(times.any(0, 120, 170));
    EXPECT_TRUE(times.any(0, 130, 200));
    EXPECT_FALSE(times.any(0, 190, 300));
    EXPECT_FALSE(times.any(1, 0, 300));
}

}  // namespace
}  // namespace rankscope::edits
