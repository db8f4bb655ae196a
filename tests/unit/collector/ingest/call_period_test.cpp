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

/// All-reduces of one size: `layers` of them 10 ms apart, and then `gapMs` up to those of the next step.
RankSummary equalLayers(int steps, int layers, int64_t gapMs) {
    RankSummary rank;
    int64_t ns = 0;
    for (int i = 0; i < steps * layers; ++i) {
        CallFact call;
        call.op = store::Op::allReduce;
        call.bytes = 1 << 26;
        call.kernelIndex = i;
        call.arrivalNs = ns;
        ns += 1'000'000 * (i % layers == layers - 1 ? gapMs : 10);
        rank.calls.push_back(call);
    }
    return rank;
}

TEST(CallPeriod, OfEqualLayersTheForwardPassTellsTheStep) {
    RankSummary rank = equalLayers(10, 12, 70);
    rank.calls.erase(rank.calls.begin(), rank.calls.begin() + 5);  // the recording began in a step
    const auto period = findCallPeriod(rank, 0, CommunicatorSet({}));
    ASSERT_TRUE(period);
    EXPECT_EQ(period->first, 7u);
    EXPECT_EQ(period->length, 12u);
    EXPECT_EQ(period->repeats, 9u);
}

TEST(CallPeriod, AStallOrTwoLeaveTheStepAsItIs) {
    RankSummary rank = equalLayers(20, 12, 70);
    for (const size_t from : {100u, 101u})
        for (size_t i = from; i < rank.calls.size(); ++i) rank.calls[i].arrivalNs += 1'000'000'000;
    const auto period = findCallPeriod(rank, 0, CommunicatorSet({}));
    ASSERT_TRUE(period);
    EXPECT_EQ(period->length, 12u);
    EXPECT_EQ(period->repeats, 20u);
}

TEST(CallPeriod, WhatAJobDoesEverySoManyStepsMakesNoStepOfThem) {
    // One all-reduce a step, and each tenth step takes twice as long: it logs.
    const auto logging = findCallPeriod(equalLayers(6, 10, 20), 0, CommunicatorSet({}));
    ASSERT_TRUE(logging);
    EXPECT_EQ(logging->length, 1u);
    const auto even = findCallPeriod(equalLayers(30, 1, 10), 0, CommunicatorSet({}));
    ASSERT_TRUE(even);
    EXPECT_EQ(even->length, 1u);
}

TEST(CallPeriod, NoCallsHaveNone) {
    EXPECT_FALSE(findCallPeriod(turns(0), 0, CommunicatorSet({})));
    RankSummary rank = turns(4);
    for (CallFact& call : rank.calls) call.kernelIndex = -1;
    EXPECT_FALSE(findCallPeriod(rank, 0, CommunicatorSet({})));
}

}  // namespace
}  // namespace rankscope::collector
