// SPDX-License-Identifier: Apache-2.0
// When the data of a collective were there, by the events that its stream waits for. Times in us.
#include <gtest/gtest.h>

#include "analyzer/facts/rank_events.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::facts {
namespace {

using test::kUs;
constexpr int32_t kCompute = 1, kNetwork = 2, kOrder = 3;  // streams; the last one runs nothing

class Calls {
  public:
    void kernel(int64_t callAt, int64_t start, int64_t end, int32_t stream = kCompute) {
        ComputeTask task;
        task.startNs = start * kUs;
        task.endNs = end * kUs;
        task.streamId = stream;
        task.correlation = call(store::ApiKind::launch, callAt);
        m_events.compute.push_back(task);
    }
    void collective(int64_t callAt, int64_t start, int64_t end, int32_t stream = kNetwork) {
        CommTask task;
        task.startNs = start * kUs;
        task.endNs = end * kUs;
        task.launchNs = callAt * kUs;
        task.streamId = stream;
        task.correlation = call(store::ApiKind::launch, callAt);
        m_events.communication.push_back(task);
    }
    /// `later` waits for what `earlier` was given so far.
    void order(int64_t callAt, int32_t later, int32_t earlier) {
        m_events.eventRecords.push_back({call(store::ApiKind::event, callAt), ++m_event, earlier});
        m_events.synchronizations.push_back(
            {call(store::ApiKind::event, callAt + 1), m_event, later, SynchronizationRecord::Kind::streamWaitEvent});
    }
    /// As NCCL does around each of its kernels: from `callAt` to 5 us later, the kernel is called 2 us after it.
    void orderedCollective(int64_t callAt, int64_t start, int64_t end, int32_t stream = kNetwork) {
        order(callAt, stream, kOrder);
        collective(callAt + 2, start, end, stream);
        order(callAt + 3, kOrder, stream);
    }
    /// When the data of the `i`-th collective were there; -1: unknown.
    int64_t readyUs(size_t i) {
        findReadyTimes(m_events);
        const int64_t ns = m_events.communication[i].readyNs;
        return ns < 0 ? -1 : ns / kUs;
    }

  private:
    int64_t call(store::ApiKind kind, int64_t at) {
        HostCall call;
        call.startNs = at * kUs;
        call.endNs = (at + 1) * kUs;
        call.correlation = ++m_correlation;
        call.kind = kind;
        m_events.hostCalls.push_back(call);
        return m_correlation;
    }

    RankEvents m_events;
    int64_t m_correlation = 0, m_event = 0;
};

TEST(ReadyTimes, ACollectiveIsReadyWhenTheWorkBeforeTheRecordIsDone) {
    Calls calls;
    calls.kernel(0, 10, 500);
    calls.order(2, kNetwork, kCompute);
    calls.kernel(4, 500, 900);  // behind the record
    calls.collective(6, 600, 650);
    EXPECT_EQ(calls.readyUs(0), 500);
}

TEST(ReadyTimes, AStreamThatRunsNothingHandsOnWhatItWaitsFor) {
    Calls calls;
    calls.kernel(0, 10, 500);
    calls.order(2, kOrder, kCompute);
    calls.order(4, kNetwork, kOrder);
    calls.collective(6, 600, 650);
    EXPECT_EQ(calls.readyUs(0), 500);
}

/// NCCL's own order of its kernels says nothing of their data: without a wait of the program's the second collective is
/// ready with the first.
TEST(ReadyTimes, TheOrderOfACommunicatorsKernelsIsNoWait) {
    Calls calls;
    calls.kernel(0, 10, 500);
    calls.order(2, kNetwork, kCompute);
    calls.orderedCollective(4, 600, 700);
    calls.orderedCollective(10, 700, 800);
    EXPECT_EQ(calls.readyUs(0), 500);
    EXPECT_EQ(calls.readyUs(1), 500);
}

TEST(ReadyTimes, WithoutAnyOtherWaitNothingIsKnown) {
    Calls calls;
    calls.kernel(0, 10, 500);
    calls.orderedCollective(4, 600, 700);
    calls.orderedCollective(10, 700, 800);
    EXPECT_EQ(calls.readyUs(0), -1);
    EXPECT_EQ(calls.readyUs(1), -1);
}

/// A record counts as of its own time, what the stream is to wait for later is not in it.
TEST(ReadyTimes, OnlyWhatWasWaitedForBeforeTheRecordIsHandedOn) {
    Calls calls;
    calls.kernel(0, 10, 100);
    calls.order(2, kOrder, kCompute);
    calls.order(4, kNetwork, kOrder);
    calls.kernel(6, 100, 500);
    calls.order(8, kOrder, kCompute);
    calls.collective(10, 600, 650);
    EXPECT_EQ(calls.readyUs(0), 100);
}

}  // namespace
}  // namespace rankscope::facts
