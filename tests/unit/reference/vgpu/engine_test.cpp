// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/reference/vgpu/engine_fixture.h"

namespace rankscope::vgpu {
namespace {

TEST_F(EngineTest, kernelsOfAStreamRunOneAfterTheOther) {
    uint32_t rank = addRank(), stream = addStream(rank);
    Op& first = submit(stream, OpKind::kernel, 0, 50'000);
    Op& second = submit(stream, OpKind::kernel, 1000, 20'000);
    hostWaits(rank, stream);
    engine.advance(rank);
    EXPECT_EQ(first.startNs, kLaunchNs);
    EXPECT_EQ(first.endNs, kLaunchNs + 50'000);
    EXPECT_EQ(second.startNs, first.endNs);
    EXPECT_EQ(second.endNs, first.endNs + 20'000);
    EXPECT_EQ(arena.threads[rank].state, ThreadState::running);
    EXPECT_GT(arena.threads[rank].resumeNs, second.endNs);
}

TEST_F(EngineTest, nothingIsFinalPastTheBoundOfARunningHost) {
    uint32_t rank = addRank(), stream = addStream(rank);
    submit(stream, OpKind::kernel, 0, 50'000);
    arena.threads[rank].boundNs = 10'000;
    engine.advance(rank);
    EXPECT_EQ(arena.streams[stream].finishedSeq.load(), 0u);
    arena.threads[rank].boundNs = 60'000;
    engine.advance(rank);
    EXPECT_EQ(arena.streams[stream].finishedSeq.load(), 1u);
}

TEST_F(EngineTest, aWaitHoldsTheStreamUntilTheOtherHasFinished) {
    uint32_t rank = addRank(), a = addStream(rank), b = addStream(rank);
    submit(a, OpKind::kernel, 0, 100'000);
    Op& wait = submit(b, OpKind::wait, 0, 0);
    wait.depStream = a;
    wait.depSeq = 1;
    Op& behind = submit(b, OpKind::kernel, 0, 5000);
    hostWaits(rank, b);
    engine.advance(rank);
    EXPECT_EQ(behind.startNs, kLaunchNs + 100'000);
}

TEST_F(EngineTest, aCollectiveStartsWithItsLastMemberAndEndsForAllAtOnce) {
    uint32_t a = addRank(), b = addRank(), sa = addStream(a), sb = addStream(b);
    uint32_t comm = addComm({a, b});
    submit(sb, OpKind::kernel, 0, 80'000);  // b is the straggler
    Op& first = submitTransfer(sa, comm, 0, 0, 2'000'000);
    Op& last = submitTransfer(sb, comm, 1, 0, 2'000'000);
    hostWaits(a, sa);
    hostWaits(b, sb);
    engine.advance(a);
    EXPECT_EQ(first.startNs, kLaunchNs);
    EXPECT_EQ(last.startNs, kLaunchNs + 80'000);
    EXPECT_EQ(last.endNs, last.startNs + 1000 + 10'000);  // alpha, then 2 MB at 200 GB/s
    EXPECT_EQ(first.endNs, last.endNs);
}

TEST_F(EngineTest, transfersShareAPortEqually) {
    uint32_t a = addRank(), b = addRank(), c = addRank();
    uint32_t a1 = addStream(a), a2 = addStream(a), sb = addStream(b), sc = addStream(c);
    uint32_t ab = addComm({a, b}), ac = addComm({a, c});
    Op& longer = submitTransfer(a1, ab, 0, 0, 4'000'000);
    submitTransfer(sb, ab, 1, 0, 4'000'000);
    Op& shorter = submitTransfer(a2, ac, 0, 0, 1'000'000);
    submitTransfer(sc, ac, 1, 0, 1'000'000);
    for (uint32_t rank : {a, b, c}) hostSleeps(rank);
    engine.advance(a);
    EXPECT_EQ(shorter.endNs - shorter.startNs, 1000 + 10'000);         // half of 200 GB/s
    EXPECT_EQ(longer.endNs - longer.startNs, 1000 + 10'000 + 15'000);  // then 3 MB alone
}

TEST_F(EngineTest, severalNodesAreBoundByTheirNics) {
    uint32_t a = addRank(1), b = addRank(2), sa = addStream(a), sb = addStream(b);
    uint32_t comm = addComm({a, b});
    Op& op = submitTransfer(sa, comm, 0, 0, 4'000'000);
    submitTransfer(sb, comm, 1, 0, 4'000'000);
    hostWaits(a, sa);
    hostWaits(b, sb);
    engine.advance(a);
    EXPECT_EQ(op.endNs - op.startNs, 1000 + 100'000);  // one NIC of 40 GB/s per node
}

TEST_F(EngineTest, computeIsSlowedExactlyWhileATransferIsResident) {
    uint32_t a = addRank(), b = addRank(), work = addStream(a), sa = addStream(a), sb = addStream(b);
    uint32_t comm = addComm({a, b});
    Op& kernel = submit(work, OpKind::kernel, 0, 100'000);
    submitTransfer(sa, comm, 0, 0, 2'000'000);
    submitTransfer(sb, comm, 1, 0, 2'000'000);
    hostSleeps(a);
    hostSleeps(b);
    engine.advance(a);
    EXPECT_EQ(kernel.endNs - kernel.startNs, 100'000 + 11'000 / 2);  // half speed for the 11 us of the transfer
}

TEST_F(EngineTest, aTransferIsSlowedExactlyWhileARankAtItsEndComputes) {
    uint32_t a = addRank(), b = addRank(), c = addRank();
    uint32_t work = addStream(b), idle = addStream(c), sa = addStream(a), sb = addStream(b);
    for (uint32_t rank : {a, b, c}) {
        arena.devices[rank].slowedRate = 1;
        arena.devices[rank].slowedTraffic = 0.5;
    }
    uint32_t comm = addComm({a, b});
    Op& transfer = submitTransfer(sa, comm, 0, 0, 4'000'000);
    submitTransfer(sb, comm, 1, 0, 4'000'000);
    submit(work, OpKind::kernel, 0, 5'000);
    submit(work, OpKind::kernel, 0, 6'000);    // at once
    submit(idle, OpKind::kernel, 0, 100'000);  // of no rank of theirs
    for (uint32_t rank : {a, b, c}) hostSleeps(rank);
    engine.advance(a);
    // 4 MB at 200 GB/s take 20 us; of the first 10 us of them half is done.
    EXPECT_EQ(transfer.endNs - transfer.startNs, 1000 + 10'000 + 15'000);
}

TEST_F(EngineTest, severalResidentTransfersSlowComputeOnlyOnce) {
    uint32_t a = addRank(), b = addRank(), work = addStream(a), a1 = addStream(a), a2 = addStream(a), b1 = addStream(b),
             b2 = addStream(b);
    uint32_t first = addComm({a, b}), second = addComm({b, a});
    Op& kernel = submit(work, OpKind::kernel, 0, 100'000);
    submitTransfer(a1, first, 0, 0, 2'000'000);
    submitTransfer(b1, first, 1, 0, 2'000'000);
    submitTransfer(a2, second, 1, 0, 2'000'000);
    submitTransfer(b2, second, 0, 0, 2'000'000);
    hostSleeps(a);
    hostSleeps(b);
    engine.advance(a);
    EXPECT_EQ(kernel.endNs - kernel.startNs, 100'000 + 21'000 / 2);  // 1 us of alpha, then 4 MB through one port
}

TEST_F(EngineTest, groupsOfDifferentShapeShareTheNicsTheyHaveInCommon) {
    // Two nodes of two: one group over all four ranks, one over the first rank of each node.
    std::vector<uint32_t> ranks{addRank(1), addRank(1), addRank(2), addRank(2)}, streams;
    for (uint32_t rank : ranks) streams.push_back(addStream(rank));
    uint32_t world = addComm(ranks), pair = addComm({ranks[0], ranks[2]});
    uint32_t p0 = addStream(ranks[0]), p2 = addStream(ranks[2]);
    Op* wide = nullptr;
    for (uint32_t r = 0; r < 4; r++) wide = &submitTransfer(streams[r], world, r, 0, 4'000'000);
    Op& narrow = submitTransfer(p0, pair, 0, 0, 1'000'000);
    submitTransfer(p2, pair, 1, 0, 1'000'000);
    for (uint32_t rank : ranks) hostSleeps(rank);
    engine.advance(0);
    EXPECT_EQ(narrow.endNs - narrow.startNs, 1000 + 50'000);         // half of one NIC of 40 GB/s
    EXPECT_EQ(wide->endNs - wide->startNs, 1000 + 50'000 + 25'000);  // 2 MB at 2 x 20, then 2 MB at 2 x 40
}

TEST_F(EngineTest, allToAllAcrossNodesIsBoundByWhatEachNicCarries) {
    // Two nodes of two, 1 MB for each peer: 1 MB stays on the node, 2 MB leave through a NIC of 40 GB/s.
    std::vector<uint32_t> ranks{addRank(1), addRank(1), addRank(2), addRank(2)};
    uint32_t comm = addComm(ranks);
    std::vector<Op*> ops;
    for (uint32_t me = 0; me < 4; me++) {
        uint32_t stream = addStream(ranks[me]);
        Op& op = submit(stream, OpKind::transfer, 0, 0);
        Queues& queues = arena.queues[ranks[me]];
        uint32_t slot = 0;
        for (uint32_t peer = 0; peer < 4; peer++) {
            for (uint8_t isSend : {0, 1}) {
                if (peer == me) continue;
                Part& part = queues.parts[slot];
                part = Part{};
                part.process = ranks[me];
                part.op = static_cast<uint32_t>(&op - queues.ops);
                part.next = op.firstPart;
                part.comm = comm;
                part.member = me;
                part.peer = peer;
                part.isSend = isSend;
                part.kind = TransferKind::p2p;
                part.latencyNs = 1000;
                part.busBytes = 1'000'000;
                part.efficiency = 1;
                op.firstPart = slot++;
                op.pendingParts++;
            }
        }
        ops.push_back(&op);
        hostSleeps(ranks[me]);
    }
    engine.advance(0);
    for (Op* op : ops) EXPECT_EQ(op->endNs - op->startNs, 1000 + 50'000);
}

TEST_F(EngineTest, membersThatDisagreeNeverGetOut) {
    uint32_t a = addRank(), b = addRank(), sa = addStream(a), sb = addStream(b);
    uint32_t comm = addComm({a, b});
    submitTransfer(sa, comm, 0, 0, 1000);
    Op& other = submitTransfer(sb, comm, 1, 0, 1000);
    arena.queues[b].parts[other.firstPart].fingerprint = 1;
    hostWaits(a, sa);
    hostWaits(b, sb);
    engine.advance(a);
    EXPECT_EQ(arena.streams[sa].finishedSeq.load(), 0u);
    EXPECT_EQ(arena.threads[a].state, ThreadState::waiting);
}

TEST_F(EngineTest, ranksWithoutACommonCommunicatorDoNotHoldEachOtherUp) {
    uint32_t a = addRank(), b = addRank(), sa = addStream(a);
    arena.threads[b].boundNs = 0;  // runs, and has done nothing yet
    submit(sa, OpKind::kernel, 0, 50'000);
    hostWaits(a, sa);
    engine.advance(a);
    EXPECT_EQ(arena.streams[sa].finishedSeq.load(), 1u);
}

TEST_F(EngineTest, aDeadRankLeavesTheBounds) {
    uint32_t a = addRank(), b = addRank(), sa = addStream(a);
    addComm({a, b});
    submit(sa, OpKind::kernel, 0, 50'000);
    hostWaits(a, sa);
    engine.advance(a);
    ASSERT_EQ(arena.streams[sa].finishedSeq.load(), 0u);
    engine.removeProcess(b);
    engine.advance(a);
    EXPECT_EQ(arena.streams[sa].finishedSeq.load(), 1u);
}

}  // namespace
}  // namespace rankscope::vgpu
