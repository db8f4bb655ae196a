// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/clock_alignment.h"

#include <gtest/gtest.h>

namespace rankscope::collector {
namespace {

constexpr int64_t kAheadNs = 7'000'000;  // the clock of the second host

/// Four pipeline stages on two hosts: 0 and 1, 2 and 3. Each step all send to and receive from their neighbours, in one
/// kernel each, that ends with its last message.
struct Pipeline {
    std::vector<RankSummary> summaries{4};
    std::vector<MessagePair> messages;
    int steps = 0;
    int64_t driftPpb = 0;

    Pipeline() {
        for (int rank = 0; rank < 4; ++rank) {
            summaries[static_cast<size_t>(rank)].hostName = rank < 2 ? "node0" : "node1";
            summaries[static_cast<size_t>(rank)].firstNs = rank < 2 ? 0 : kAheadNs;
            summaries[static_cast<size_t>(rank)].lastNs = 10'000'000'000;
        }
    }

    int64_t shown(size_t rank, int64_t trueNs) const {
        return rank < 2 ? trueNs : trueNs + kAheadNs + trueNs / 1000 * driftPpb / 1'000'000;
    }

    /// Ends of the messages between 0 and 1, 1 and 2, 2 and 3.
    void step(int64_t ends01Ns, int64_t ends12Ns, int64_t ends23Ns) {
        const int64_t ends[] = {ends01Ns, ends12Ns, ends23Ns};
        const int64_t ofKernel[] = {ends01Ns, std::max(ends01Ns, ends12Ns), std::max(ends12Ns, ends23Ns), ends23Ns};
        for (size_t pair = 0; pair < std::size(ends); ++pair) {
            MessagePair message{0, static_cast<int32_t>(pair), static_cast<int32_t>(pair) + 1, steps};
            for (const size_t rank : {pair, pair + 1}) {
                CallFact call;
                call.op = rank == pair ? store::Op::send : store::Op::recv;
                call.kernelIndex = steps;
                call.arrivalNs = shown(rank, ends[pair] - 100'000);
                call.endNs = shown(rank, ofKernel[rank]);
                std::vector<CallFact>& calls = summaries[rank].calls;
                (rank == pair ? message.sendSummary : message.recvSummary) = static_cast<int32_t>(rank);
                (rank == pair ? message.sendCall : message.recvCall) = static_cast<int32_t>(calls.size());
                calls.push_back(call);
            }
            messages.push_back(message);
        }
        ++steps;
    }
};

TEST(ClockAlignment, GroupsThatOtherMessagesHoldDoNotTellTheTime) {
    Pipeline job;
    job.driftPpb = 20'000;
    for (int i = 0; i < 200; ++i) {
        const int64_t ns = 1'000'000 + i * 10'000'000;
        if (i % 4 == 0)
            job.step(ns, ns + 50'000, ns);  // the message between the hosts is the last one
        else
            job.step(ns, ns + 50'000, ns + 400'000);  // the last stage is late, so that stage 2 leaves after stage 1
    }
    const HostClocks clocks = alignClocks(job.summaries, {}, job.messages);
    ASSERT_EQ(clocks.hosts.size(), 2u);
    EXPECT_EQ(clocks.hosts[1].method, "collectives");
    EXPECT_EQ(clocks.hosts[1].fit.samples, 50);
    EXPECT_LE(clocks.hosts[1].fit.boundNs, 1'000);
    for (const int64_t trueNs : {int64_t{1'000'000}, int64_t{2'000'000'000}})
        EXPECT_NEAR(clocks.hosts[1].fit.apply(job.shown(2, trueNs)), trueNs, 1'000);
}

TEST(ClockAlignment, WhereEveryGroupIsHeldTheBoundSaysSo) {
    Pipeline job;
    for (int i = 0; i < 40; ++i) {
        const int64_t ns = 1'000'000 + i * 10'000'000;
        job.step(ns, ns + 50'000, ns + (i % 2 == 0 ? 400'000 : 100'000));
    }
    const HostClocks clocks = alignClocks(job.summaries, {}, job.messages);
    EXPECT_EQ(clocks.hosts[1].fit.samples, 40);
    EXPECT_GE(clocks.hosts[1].fit.boundNs, 100'000);
}

TEST(ClockAlignment, AnUnpairedCallMayBeWhatHoldsItsKernel) {
    Pipeline job;
    for (int i = 0; i < 40; ++i) {
        const int64_t ns = 1'000'000 + i * 10'000'000;
        job.step(ns, ns + 50'000, ns);
        CallFact lost = job.summaries[2].calls.back();
        lost.peer = 9;
        job.summaries[2].calls.push_back(lost);
        for (CallFact& call : job.summaries[2].calls)
            if (call.kernelIndex == i) call.endNs += i % 2 == 0 ? 300'000 : 0;
    }
    const HostClocks clocks = alignClocks(job.summaries, {}, job.messages);
    EXPECT_GE(clocks.hosts[1].fit.boundNs, 100'000);
}

}  // namespace
}  // namespace rankscope::collector
