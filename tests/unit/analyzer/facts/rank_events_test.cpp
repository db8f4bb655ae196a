// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/rank_events.h"

#include <gtest/gtest.h>

namespace rankscope::facts {
namespace {

/// Ten steps of 100 launches; those of `lost` have no kernel.
RankEvents eventsWithout(int lost, int howMany) {
    RankEvents events;
    for (int step = 0; step < 10; ++step) {
        for (int i = 0; i < 100; ++i) {
            const int64_t at = step * 1'000'000 + i * 1'000;
            HostCall call;
            call.startNs = at;
            call.endNs = at + 500;
            call.kind = store::ApiKind::launch;
            call.correlation = step * 100 + i + 1;
            events.hostCalls.push_back(call);
            if (step != lost || i >= howMany)
                events.compute.push_back({at + 700, at + 900, {}, 1, 0, call.correlation});
        }
    }
    return events;
}

RankFacts tenSteps() {
    RankFacts facts;
    for (int step = 0; step < 10; ++step) facts.steps.push_back({step, step * 1'000'000, 1'000'000, false});
    return facts;
}

TEST(DeviceLoss, AStepWhoseLaunchesHaveNoKernelsIsMarked) {
    EXPECT_EQ(stepsWithLostRecords(eventsWithout(7, 40), tenSteps()), std::vector<int>{7});
    EXPECT_TRUE(stepsWithLostRecords(eventsWithout(-1, 0), tenSteps()).empty());
}

TEST(DeviceLoss, BehindATakeOverOfCuptiMostStepsMayBeWithoutKernels) {
    RankEvents events = eventsWithout(-1, 0);
    std::erase_if(events.compute, [](const ComputeTask& task) { return task.startNs >= 2'050'000; });
    EXPECT_TRUE(stepsWithLostRecords(events, tenSteps()).empty()) << "it may be a trace without correlation";
    RankFacts taken = tenSteps();
    taken.cuptiTaken = true;
    EXPECT_EQ(stepsWithLostRecords(events, taken), (std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(DeviceLoss, AnEmptyCopyOrTwoIsNoLoss) {
    EXPECT_TRUE(stepsWithLostRecords(eventsWithout(7, 2), tenSteps()).empty());
}

TEST(DeviceLoss, SetsOfNothingAreNoneHoweverMany) {
    RankEvents events = eventsWithout(-1, 0);
    for (int i = 0; i < 400; ++i) {
        HostCall call;
        call.startNs = 2'000'000 + i * 1'000;
        call.endNs = call.startNs + 14;
        call.kind = i % 2 != 0 ? store::ApiKind::set : store::ApiKind::copy;
        call.correlation = 100'000 + i;
        events.hostCalls.push_back(call);
    }
    EXPECT_TRUE(stepsWithLostRecords(events, tenSteps()).empty());
}

TEST(DeviceLoss, LaunchesThatOnlyAHookSawAreLostWhereOthersHaveKernels) {
    RankEvents events = eventsWithout(-1, 0);
    for (HostCall& call : events.hostCalls)
        if (call.startNs >= 9'000'000) call.correlation = -1;  // CUPTI's last buffer was not delivered
    std::erase_if(events.compute, [](const ComputeTask& task) { return task.startNs >= 9'000'000; });
    EXPECT_EQ(stepsWithLostRecords(events, tenSteps()), std::vector<int>{9});
}

TEST(DeviceLoss, ARankWithoutCorrelationsSaysNothing) {
    RankEvents events = eventsWithout(-1, 0);
    for (HostCall& call : events.hostCalls) call.correlation = -1;
    EXPECT_TRUE(stepsWithLostRecords(events, tenSteps()).empty());
}

TEST(LikelyWait, OfAMemberWhosePeersArrivalIsLostIsBounded) {
    TraceFacts facts;
    facts.typicalTransferNs[{1, store::Op::allReduce, 1000}] = 300;
    store::Collective collective;
    collective.communicatorId = 1;
    collective.op = store::Op::allReduce;
    collective.bytes = 1000;
    collective.lastArrivalNs = 150;
    store::CollectiveMember member;
    member.arrivalNs = 100;
    member.endNs = 1100;
    EXPECT_EQ(facts.likelyWaitNs(collective, member), 700) << "the kernel without a transfer of this size";
    collective.lastArrivalNs = 950;
    EXPECT_EQ(facts.likelyWaitNs(collective, member), 850) << "at least until the last recorded arrival";
    collective.bytes = 2000;
    collective.lastArrivalNs = 150;
    EXPECT_EQ(facts.likelyWaitNs(collective, member), 50) << "nothing to compare with: the lower bound";
}

}  // namespace
}  // namespace rankscope::facts
