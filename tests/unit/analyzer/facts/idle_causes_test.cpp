// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/idle_causes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace rankscope::facts {
namespace {

using store::ApiKind;

/// Kernels and calls of one rank, in microseconds.
class Rank {
  public:
    Rank() { m_events.stepsBeginOnHost = true; }
    Rank& kernel(int64_t startUs, int64_t endUs, int64_t launchUs) {
        ++m_correlation;
        m_events.compute.push_back({startUs * 1000, endUs * 1000, {}, 1, 0, m_correlation});
        if (launchUs >= 0) call(launchUs, launchUs + 5, ApiKind::launch, m_correlation);
        return *this;
    }
    Rank& call(int64_t startUs, int64_t endUs, ApiKind kind, int64_t correlation = -1) {
        HostCall call;
        call.startNs = startUs * 1000;
        call.endNs = endUs * 1000;
        call.kind = kind;
        call.correlation = correlation;
        call.waits = kind == ApiKind::synchronize;
        call.id = static_cast<int64_t>(m_events.hostCalls.size()) + 1;
        m_events.hostCalls.push_back(call);
        return *this;
    }
    Rank& copy(int64_t startUs, int64_t endUs, int64_t launchUs) {
        ++m_correlation;
        MemoryTask task;
        task.startNs = startUs * 1000;
        task.endNs = endUs * 1000;
        task.correlation = m_correlation;
        m_events.memory.push_back(task);
        return call(launchUs, launchUs + 5, ApiKind::copy, m_correlation);
    }
    Rank& loading(int64_t startUs, int64_t endUs) {
        m_events.ranges.push_back({startUs * 1000, endUs * 1000, 7, 0, true});
        return *this;
    }
    Rank& operation(int64_t startUs, int64_t endUs, int32_t name, bool loadsData = false) {
        m_events.operationsRecorded = true;
        m_events.operations.push_back({startUs * 1000, endUs * 1000, name, 0, loadsData, 1});
        return *this;
    }
    HostDoing doing(int64_t fromUs, int64_t toUs) const {
        const RankEvents sorted = events();
        return IdleCauses(sorted).of({fromUs * 1000, toUs * 1000}, 0).doing;
    }
    RankEvents events() const {
        RankEvents sorted = m_events;
        std::stable_sort(sorted.hostCalls.begin(), sorted.hostCalls.end(),
                         [](const HostCall& a, const HostCall& b) { return a.startNs < b.startNs; });
        return sorted;
    }
    /// Cause of the gap between two kernels, in a step that begins at `stepUs`.
    IdleCause cause(int64_t fromUs, int64_t toUs, int64_t stepUs = 0) const {
        const RankEvents sorted = events();
        return IdleCauses(sorted).of({fromUs * 1000, toUs * 1000}, stepUs * 1000).cause;
    }

  private:
    RankEvents m_events;
    int64_t m_correlation = 0;
};

TEST(IdleCauses, AKernelSubmittedAfterTheDeviceRanDryWasLaunchedLate) {
    EXPECT_EQ(Rank().kernel(10, 100, 0).kernel(200, 300, 188).cause(100, 200), IdleCause::lateLaunch);
}

TEST(IdleCauses, SilenceBehindTheCopyOfABatchIsStillTheBeginningOfAStep) {
    // A loader that fetches ahead copies the batch that it has, and then waits for the next one.
    Rank loads, computes;
    loads.kernel(10, 100, 0).copy(110, 115, 104).kernel(5'100, 5'200, 5'050);
    EXPECT_EQ(loads.cause(115, 5'100, 102), IdleCause::input);
    computes.kernel(10, 100, 0).kernel(110, 115, 104).kernel(5'100, 5'200, 5'050);
    EXPECT_EQ(computes.cause(115, 5'100, 102), IdleCause::lateLaunch);
}

TEST(IdleCauses, WhatALateHostDidIsTheInnermostOperation) {
    Rank rank;
    rank.kernel(10, 100, 0)
        .operation(100, 5'000, 3)
        .operation(200, 4'000, 4)
        .operation(300, 400, 5)
        .kernel(5'100, 5'200, 5'050);
    EXPECT_EQ(rank.cause(100, 5'100), IdleCause::lateLaunch);
    EXPECT_EQ(rank.doing(100, 5'100).nameId, 4);
    EXPECT_EQ(rank.doing(100, 5'100).ns, 3'700'000);
}

TEST(IdleCauses, WhereOperationsAreRecordedOnlyALoaderIsInput) {
    // The same silence in front of the first launch of a step: nobody knows, a loader, something else.
    EXPECT_EQ(Rank().kernel(5'100, 5'200, 5'050).cause(0, 5'100), IdleCause::input);
    EXPECT_EQ(Rank().operation(10, 5'000, 3, true).kernel(5'100, 5'200, 5'050).cause(0, 5'100), IdleCause::input);
    EXPECT_EQ(Rank().operation(10, 5'000, 3).kernel(5'100, 5'200, 5'050).cause(0, 5'100), IdleCause::lateLaunch);
    // Inside a loader, whatever operations it is made of.
    EXPECT_EQ(Rank().operation(10, 5'000, 3, true).operation(20, 4'900, 4).kernel(5'100, 5'200, 5'050).cause(0, 5'100),
              IdleCause::input);
}

TEST(IdleCauses, AKernelThatWasReadyDependsOnOtherWork) {
    EXPECT_EQ(Rank().kernel(10, 100, 0).kernel(200, 300, 20).cause(100, 200), IdleCause::dependency);
}

TEST(IdleCauses, ACallThatWaitedForTheDeviceIsToBlameForWhatFollows) {
    const Rank rank = Rank().kernel(10, 100, 0).call(30, 102, ApiKind::synchronize).kernel(200, 300, 190);
    EXPECT_EQ(rank.cause(100, 200), IdleCause::blockingCall);
    const RankEvents events = rank.events();
    const IdleVerdict verdict = IdleCauses(events).of({100'000, 200'000}, 0);
    EXPECT_EQ(verdict.blockedUntilNs, 102'000);
    EXPECT_EQ(verdict.callId, 2);
}

TEST(IdleCauses, ACallThatReturnedWhileTheDeviceWorkedIsNot) {
    // It ends at 60, the next kernel is submitted at once, and the device works until 100: what comes later has another
    // reason.
    const Rank rank =
        Rank().kernel(10, 50, 0).call(20, 60, ApiKind::synchronize).kernel(72, 100, 61).kernel(200, 300, 188);
    EXPECT_EQ(rank.cause(100, 200), IdleCause::lateLaunch);
}

TEST(IdleCauses, TimeInTheAllocatorIsItsOwn) {
    EXPECT_EQ(Rank().kernel(10, 100, 0).call(90, 180, ApiKind::allocate).kernel(200, 300, 188).cause(100, 200),
              IdleCause::allocator);
    EXPECT_EQ(Rank().kernel(10, 100, 0).call(30, 110, ApiKind::free).kernel(200, 300, 188).cause(100, 200),
              IdleCause::allocator)
        << "it drained the queue";
}

TEST(IdleCauses, SilenceAtTheStartOfTheStepIsInput) {
    const Rank rank = Rank().kernel(10, 100, 0).call(30, 102, ApiKind::synchronize).kernel(500, 600, 488);
    EXPECT_EQ(rank.cause(103, 500, 103), IdleCause::input);
    EXPECT_EQ(rank.cause(103, 500, 0), IdleCause::blockingCall)
        << "in the middle of a step nobody waits for a batch unless a range says so";
}

TEST(IdleCauses, ADataLoadingRangeIsInputAnywhere) {
    EXPECT_EQ(Rank().kernel(10, 100, 0).loading(110, 190).kernel(200, 300, 192).cause(100, 200), IdleCause::input);
}

TEST(IdleCauses, WithoutALaunchRowNothingIsClaimed) {
    EXPECT_EQ(Rank().kernel(10, 100, 0).kernel(200, 300, -1).cause(100, 200), IdleCause::other)
        << "a node of a CUDA graph";
    EXPECT_EQ(Rank().kernel(10, 100, -1).kernel(200, 300, -1).cause(100, 200), IdleCause::other)
        << "no host rows at all";
}

TEST(IdleCauses, CausesAddUpToTheIdleTimeToTheNanosecond) {
    std::mt19937 random(11);
    for (int round = 0; round < 100; ++round) {
        Rank rank;
        int64_t host = 0, device = 0;
        std::uniform_int_distribution<int64_t> pick(0, 9), length(1, 60);
        for (int i = 0; i < 60; ++i) {
            const int64_t what = pick(random), ns = length(random);
            if (what < 5) {
                const int64_t start = std::max(device, host + 11);
                rank.kernel(start, start + ns, host);
                host += 6;
                device = start + ns;
            } else if (what == 5) {
                const int64_t end = std::max(host, device) + 1;
                rank.call(host, end, ApiKind::synchronize);
                host = end;
            } else if (what == 6) {
                rank.call(host, host + ns, ApiKind::allocate);
                host += ns;
            } else {
                host += ns;
            }
        }
        RankFacts facts;
        facts.steps = {{0, 0, 700'000, false}, {1, 700'000, 900'000, false}};
        const RankSummary summary = summarize(rank.events(), facts);
        const int64_t byCause = std::accumulate(summary.idleByCauseNs.begin(), summary.idleByCauseNs.end(), int64_t{0});
        ASSERT_EQ(byCause, summary.steps[0].idleNs + summary.steps[1].idleNs) << "round " << round;
    }
}

}  // namespace
}  // namespace rankscope::facts
