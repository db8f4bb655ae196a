// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/collective_alignment.h"

#include <gtest/gtest.h>

#include "collector/importers/communicator_inference.h"

namespace rankscope::collector {
namespace {

using store::Op;

constexpr int64_t kMs = 1'000'000;

/// Collectives of `ops`, one every 10 ms from `first` on, that end together; this rank arrives `early` before the end.
CallSequence sequence(const std::vector<Op>& ops, int64_t first, int64_t early) {
    CallSequence result;
    for (size_t i = 0; i < ops.size(); ++i) {
        const int64_t end = (first + static_cast<int64_t>(i)) * 10 * kMs;
        result.push_back({i, ops[i], end - early, end, std::nullopt});
    }
    return result;
}

const std::vector<Op> kStep = {Op::allReduce, Op::allReduce, Op::allGather, Op::allReduce};

TEST(CollectiveAlignment, EqualSequencesLieStraight) {
    const auto found = alignSequences(sequence(kStep, 1, 2 * kMs), sequence(kStep, 1, kMs));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->shift, 0);
    EXPECT_TRUE(found->timesAgree);
}

TEST(CollectiveAlignment, ARecordingThatBeganLaterIsShifted) {
    const std::vector<Op> later(kStep.begin() + 2, kStep.end());
    const auto found = alignSequences(sequence(kStep, 1, kMs), sequence(later, 3, kMs));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->shift, 2);
    EXPECT_TRUE(found->timesAgree);
}

TEST(CollectiveAlignment, TimesDecideWhereOperationsRepeat) {
    const std::vector<Op> same(6, Op::allReduce);
    const auto found = alignSequences(sequence(same, 1, kMs), sequence(same, 2, kMs));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->shift, 1);
}

TEST(CollectiveAlignment, OtherOperationsAreAnotherCommunicator) {
    EXPECT_FALSE(alignSequences(sequence(kStep, 1, kMs),
                                sequence({Op::allReduce, Op::broadcast, Op::allGather, Op::allReduce}, 1, kMs)));
}

TEST(CollectiveAlignment, ClocksThatDifferAreToldWhenOperationsAgreeInFull) {
    const auto found = alignSequences(sequence(kStep, 1, kMs), sequence(kStep, 5000, kMs));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->shift, 0);
    EXPECT_FALSE(found->timesAgree);
    EXPECT_FALSE(alignSequences(sequence(kStep, 1, kMs), sequence({Op::allReduce}, 5000, kMs)));
}

RankCalls rankCalls(int32_t rank, const CallSequence& calls, int32_t stream = 0) {
    RankCalls result;
    result.rank = rank;
    result.streamCount = 1;
    for (const SequencedCall& call : calls)
        result.calls.push_back({call.call, call.op, call.startNs, call.endNs, stream, 0, 0, std::nullopt});
    return result;
}

TEST(CommunicatorInference, RanksThatAgreeShareAWorld) {
    ImportLosses losses;
    const auto plans =
        inferCommunicators({rankCalls(0, sequence(kStep, 1, kMs)), rankCalls(1, sequence(kStep, 1, 2 * kMs))}, losses);
    ASSERT_EQ(plans.size(), 2u);
    for (size_t rank = 0; rank < 2; ++rank) {
        ASSERT_EQ(plans[rank].communicators.size(), 1u);
        EXPECT_EQ(plans[rank].communicators[0].name, "world");
        EXPECT_EQ(plans[rank].communicators[0].nRanks, 2);
        EXPECT_EQ(plans[rank].communicators[0].commRank, static_cast<int32_t>(rank));
        EXPECT_EQ(plans[rank].communicators[0].hash, plans[0].communicators[0].hash);
        ASSERT_EQ(plans[rank].entries.size(), 4u);
        EXPECT_EQ(plans[rank].entries[3].seq, 3);
    }
    EXPECT_TRUE(losses.all().empty());
}

TEST(CommunicatorInference, PairsThatRunApartInTimeAreTwoCommunicators) {
    // Two tensor-parallel pairs: the same operations on the same stream, each pair on its own time.
    const std::vector<Op> same(8, Op::allReduce);
    auto late = sequence(same, 1, kMs);
    for (SequencedCall& call : late) {
        call.startNs += 3 * kMs;
        call.endNs += 3 * kMs;
    }
    ImportLosses losses;
    const auto plans =
        inferCommunicators({rankCalls(0, sequence(same, 1, kMs)), rankCalls(1, sequence(same, 1, 2 * kMs)),
                            rankCalls(2, late), rankCalls(3, late)},
                           losses);
    EXPECT_EQ(plans[0].communicators[0].hash, plans[1].communicators[0].hash);
    EXPECT_EQ(plans[2].communicators[0].hash, plans[3].communicators[0].hash);
    EXPECT_NE(plans[0].communicators[0].hash, plans[2].communicators[0].hash);
    EXPECT_EQ(plans[2].communicators[0].nRanks, 2);
}

TEST(CommunicatorInference, ARankThatAgreesWithNobodyStaysUnmatchedAndIsTold) {
    ImportLosses losses;
    const auto plans = inferCommunicators(
        {rankCalls(0, sequence(kStep, 1, kMs)), rankCalls(1, sequence({Op::broadcast, Op::broadcast}, 1, kMs))},
        losses);
    EXPECT_TRUE(plans[0].communicators.empty());
    EXPECT_TRUE(plans[1].communicators.empty());
    ASSERT_EQ(losses.all().size(), 1u);
    EXPECT_EQ(losses.all()[0].kind, "unmatched_collective");
    EXPECT_EQ(losses.all()[0].count, 6);
}

}  // namespace
}  // namespace rankscope::collector
