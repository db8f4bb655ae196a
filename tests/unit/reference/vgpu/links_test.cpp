// SPDX-License-Identifier: Apache-2.0
// Links that are slower than their class, and which transfers feel them.
#include "reference/vgpu/engine/links.h"

#include <algorithm>

#include "tests/unit/reference/vgpu/engine_fixture.h"

namespace rankscope::vgpu {
namespace {

class LinkTest : public EngineTest {
  protected:
    /// Four ranks of a stream each, two to a node if `nodes` is 2.
    void addRanks(uint64_t nodes) {
        for (uint64_t r = 0; r < 4; r++) {
            ranks.push_back(addRank(r * nodes / 4));
            streams.push_back(addStream(ranks.back()));
        }
    }
    void slowPair(int32_t a, int32_t b, double gbps) { arena.pairLinks[arena.pairLinkCount++] = {a, b, gbps, 1, 0, 0}; }

    /// Time of an all-reduce of `busBytes` over the given ranks, without its alpha.
    int64_t transferNs(const std::vector<uint32_t>& members, double busBytes) {
        uint32_t comm = addComm(members);
        std::vector<const Op*> ops;
        for (uint32_t m = 0; m < members.size(); m++)
            ops.push_back(&submitTransfer(streams[members[m]], comm, m, 0, busBytes));
        return run(ops);
    }
    /// Time of one message, sent when all before it have ended.
    int64_t messageNs(uint32_t from, uint32_t to, double bytes) {
        uint32_t comm = addComm({0, 1, 2, 3});
        int64_t nowNs = 0;
        for (uint32_t rank : ranks) nowNs = std::max(nowNs, arena.processes[rank].nowNs);
        Op& send = submitTransfer(streams[from], comm, from, nowNs, bytes);
        Op& receive = submitTransfer(streams[to], comm, to, nowNs, bytes);
        Part& out = arena.queues[from].parts[send.firstPart];
        Part& in = arena.queues[to].parts[receive.firstPart];
        out.kind = in.kind = TransferKind::p2p;
        out.isSend = 1;
        out.peer = to;
        in.peer = from;
        return run({&send, &receive});
    }

    /// How much earlier than the last each of six ranks of one node leaves an all-reduce of 10 MB on the bus, in chunks
    /// of 100 kB.
    std::vector<int64_t> leadsNs(double chunkBytes) {
        for (uint64_t r = 0; r < 6; r++) {
            ranks.push_back(addRank());
            streams.push_back(addStream(ranks.back()));
        }
        if (slowRank < 6) arena.devices[slowRank].in.rate = arena.devices[slowRank].out.rate = 50;
        uint32_t comm = addComm({0, 1, 2, 3, 4, 5});
        std::vector<const Op*> ops;
        for (uint32_t m = 0; m < 6; m++) {
            Op& op = submitTransfer(streams[m], comm, m, m == 1 ? 30'000 : 0, 10'000'000);
            arena.queues[ranks[m]].parts[op.firstPart].chunkBytes = chunkBytes;
            ops.push_back(&op);
        }
        run(ops);
        int64_t lastNs = 0;
        for (const Op* op : ops) lastNs = std::max(lastNs, op->endNs);
        std::vector<int64_t> leads;
        for (const Op* op : ops) leads.push_back(lastNs - op->endNs);
        return leads;
    }

    uint32_t slowRank = kNone;
    std::vector<uint32_t> ranks, streams;

  private:
    int64_t run(const std::vector<const Op*>& ops) {
        for (uint32_t rank : ranks) hostSleeps(rank);
        engine.advance(0);
        int64_t lastArrivalNs = 0;
        for (const Op* op : ops) lastArrivalNs = std::max(lastArrivalNs, op->startNs);
        return ops.front()->endNs - lastArrivalNs - 1000;
    }
};

TEST_F(LinkTest, aSlowPairSlowsTheMessagesBetweenItsTwoRanksInBothDirections) {
    slowPair(1, 2, 50);
    addRanks(1);
    EXPECT_EQ(messageNs(1, 2, 1'000'000), 20'000);
    EXPECT_EQ(messageNs(2, 1, 1'000'000), 20'000);
    EXPECT_EQ(messageNs(0, 1, 1'000'000), 5'000);
    EXPECT_EQ(messageNs(0, 3, 1'000'000), 5'000);
}

TEST_F(LinkTest, aRingThatUsesTheSlowPairRunsAtItsRate) {
    slowPair(1, 2, 50);
    addRanks(1);
    EXPECT_EQ(transferNs({0, 1, 2, 3}, 1'000'000), 20'000);
    EXPECT_EQ(transferNs({0, 1}, 1'000'000), 5'000);
    EXPECT_EQ(transferNs({1, 3, 2}, 1'000'000), 20'000);    // the ring closes from its last to its first member
    EXPECT_EQ(transferNs({1, 0, 2, 3}, 1'000'000), 5'000);  // 1-0-2-3-1 goes around it
}

TEST_F(LinkTest, betweenNodesASlowPairSlowsItsRailAndWithItTheRing) {
    slowPair(0, 2, 10);
    slowPair(0, 3, 1);  // no rail: the first GPU of one node and the second of the other
    addRanks(2);
    // Two rails of 40 GB/s carry 80; with one at 10 both run at 10.
    EXPECT_EQ(transferNs({0, 1, 2, 3}, 1'000'000), 50'000);
    EXPECT_EQ(messageNs(1, 3, 1'000'000), 25'000);
    EXPECT_EQ(messageNs(0, 2, 1'000'000), 100'000);
    EXPECT_EQ(messageNs(0, 3, 1'000'000), 1'000'000);
}

TEST_F(LinkTest, aFactorSlowsAPairByWhatItsEndsAllow) {
    arena.pairLinks[arena.pairLinkCount++] = {2, 3, 0, 0.25, 0, 0};
    addRanks(1);
    EXPECT_EQ(messageNs(2, 3, 1'000'000), 20'000);
}

TEST_F(LinkTest, anEdgeBetweenNodesCarriesWhatItsOwnEndsAndPairAllow) {
    slowPair(0, 2, 10);
    addRanks(2);
    arena.devices[3].nicIn.rate = 20;
    const Comm& comm = arena.comms[addComm({0, 1, 2, 3})];
    const auto first = networkEdges(arena, comm, 0);
    const auto second = networkEdges(arena, comm, 1);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->sendsTo, 2u);
    EXPECT_EQ(first->receivesFrom, 2u);
    EXPECT_EQ(first->sendRate, 10);
    EXPECT_EQ(first->receiveRate, 10);
    EXPECT_EQ(second->sendsTo, 3u);
    EXPECT_EQ(second->sendRate, 20);
    EXPECT_EQ(second->receiveRate, 40);
    EXPECT_EQ(rateAlone(arena, comm, 1), 20);    // two rails at the rate of the slowest
    EXPECT_EQ(rateAlone(arena, comm, 0.5), 40);  // a tree of two nodes sends half as much over them
}

TEST_F(LinkTest, insideANodeNothingGoesOverTheNetwork) {
    addRanks(1);
    EXPECT_FALSE(networkEdges(arena, arena.comms[addComm({0, 1, 2, 3})], 0));
}

TEST_F(LinkTest, onAnOddNodeOnlyTheRailsThatAllNodesHaveAreUsed) {
    addRanks(2);
    const Comm& comm = arena.comms[addComm({0, 1, 2})];  // two on the first node, one on the second
    EXPECT_TRUE(networkEdges(arena, comm, 0));
    EXPECT_FALSE(networkEdges(arena, comm, 1));
    EXPECT_TRUE(networkEdges(arena, comm, 2));
}

// A chunk takes 2 us over the slow edge and 0.5 us over the others.
TEST_F(LinkTest, behindASlowPairEachMemberLeavesAChunkEarlier) {
    slowPair(1, 2, 50);
    EXPECT_EQ(leadsNs(100'000),
              (std::vector<int64_t>{3000, 0, 0, 1500, 3000, 4500}));  // 0 is two chunks ahead of 1, 5 could be four
}

TEST_F(LinkTest, aSlowRankAndItsNeighboursLeaveLast) {
    slowRank = 0;
    EXPECT_EQ(leadsNs(100'000), (std::vector<int64_t>{0, 0, 1500, 3000, 3000, 0}));
}

TEST_F(LinkTest, ringsOfEqualEdgesEndTogether) {
    EXPECT_EQ(leadsNs(100'000), std::vector<int64_t>(6, 0));
}

TEST_F(LinkTest, nobodyLeavesBeforeTheFlowBegins) {
    slowPair(1, 2, 50);
    EXPECT_EQ(leadsNs(8'000'000), (std::vector<int64_t>{200'000, 0, 0, 120'000, 200'000, 200'000}));
}

TEST_F(LinkTest, flowsShareASlowPair) {
    slowPair(0, 1, 50);
    addRanks(1);
    uint32_t a2 = addStream(0), b2 = addStream(1);
    uint32_t first = addComm({0, 1}), second = addComm({0, 1});
    Op& longer = submitTransfer(streams[0], first, 0, 0, 2'000'000);
    submitTransfer(streams[1], first, 1, 0, 2'000'000);
    Op& shorter = submitTransfer(a2, second, 0, 0, 1'000'000);
    submitTransfer(b2, second, 1, 0, 1'000'000);
    for (uint32_t rank : ranks) hostSleeps(rank);
    engine.advance(0);
    EXPECT_EQ(shorter.endNs - shorter.startNs, 1000 + 40'000);  // half of 50 GB/s
    EXPECT_EQ(longer.endNs - longer.startNs, 1000 + 40'000 + 20'000);
}

}  // namespace
}  // namespace rankscope::vgpu
