// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/call_period.h"

#include <gtest/gtest.h>

namespace rankscope::collector {
namespace {

/// A rank that sends and receives in turn, to and from rank 1; each call has its kernel.
RankSummary turns(int count) {
    RankSummary rank;
    for (int i = 0; i < count; ++i) {
        CallFact call;
        call.op = i % 2 == 0 ? store::Op::send : store::Op::recv;
        call.peer = 1;
        call.kernelIndex = i;
        rank.calls.push_back(call);
    }
    return rank;
}

TEST(CallPeriod, TheShortestRepetitionIsThePeriod) {
    const auto period = findCallPeriod(turns(12), 0, CommunicatorSet({}));
    ASSERT_TRUE(period);
    EXPECT_EQ(period->first, 0u);
    EXPECT_EQ(period->length, 2u);
    EXPECT_EQ(period->repeats, 6u);
}

TEST(CallPeriod, CallsThatTheDeviceHadNotComeToAreNoPartOfIt) {
    RankSummary rank = turns(15);
    for (size_t i = 12; i < 15; ++i) rank.calls[i].kernelIndex = -1;
    const auto period = findCallPeriod(rank, 0, CommunicatorSet({}));
    ASSERT_TRUE(period);
    EXPECT_EQ(period->repeats, 6u);
}

TEST(CallPeriod, WithoutTheTimesOfACallInTheMiddleThereIsNone) {
    RankSummary rank = turns(12);
    rank.calls[5].kernelIndex = -1;
    EXPECT_FALSE(findCallPeriod(rank, 0, CommunicatorSet({})));
}

TEST(CallPeriod, NoCallsHaveNone) {
    EXPECT_FALSE(findCallPeriod(turns(0), 0, CommunicatorSet({})));
    RankSummary rank = turns(4);
    for (CallFact& call : rank.calls) call.kernelIndex = -1;
    EXPECT_FALSE(findCallPeriod(rank, 0, CommunicatorSet({})));
}

}  // namespace
}  // namespace rankscope::collector
