// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "reference/vgpu/arena.h"
#include "reference/vgpu/engine.h"
#include "reference/vgpu/links.h"

namespace rankscope::vgpu {
namespace {

constexpr int64_t kLaunchNs = 6000;

/// Ranks of one GPU and one host thread each, in memory of this process alone.
class EngineTest : public testing::Test {
  protected:
    EngineTest()
        : m_memory(mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
          arena(*static_cast<Arena*>(m_memory)),
          engine(arena) {
        initializeArena(arena, kLaunchNs);
    }
    ~EngineTest() override { munmap(m_memory, sizeof(Arena)); }

    uint32_t addRank(uint64_t hostKey = 0) {
        uint32_t p = arena.processCount++;
        Process& process = arena.processes[p];
        process.alive = 1;
        process.rank = static_cast<int32_t>(p);
        process.island = p;
        process.nextOfIsland = process.firstStream = process.firstFlow = kNone;
        process.firstThread = p;
        HostThread& thread = arena.threads[p];
        arena.threadCount++;
        thread.process = p;
        thread.nextOfProcess = kNone;
        thread.state = ThreadState::running;
        Device& device = arena.devices[p];
        arena.deviceCount++;
        device = Device{};
        device.process = p;
        device.rank = process.rank;
        device.hostKey = hostKey;
        device.slowedRate = 0.5;
        device.out.rate = device.in.rate = 200;
        device.nicOut.rate = device.nicIn.rate = 40;
        return p;
    }

    uint32_t addStream(uint32_t process) {
        uint32_t index = arena.streamCount++;
        Stream& stream = arena.streams[index];
        stream.process = stream.device = process;
        stream.ordinal = index;
        stream.head = stream.tail = stream.firstWaiter = stream.nextWaiter = kNone;
        stream.nextOfProcess = arena.processes[process].firstStream;
        arena.processes[process].firstStream = index;
        return index;
    }

    Op& submit(uint32_t stream, OpKind kind, int64_t hostNs, int64_t workNs) {
        Process& process = arena.processes[arena.streams[stream].process];
        auto index = static_cast<uint32_t>(process.submitted.load());
        Op& op = process.ops[index];
        op.kind = kind;
        op.contended = kind == OpKind::kernel;
        op.stream = stream;
        op.seq = ++m_submitted[stream];
        op.readyNs = hostNs + kLaunchNs;
        op.workNs = workNs;
        op.firstPart = kNone;
        process.submission[index] = index;
        process.submitted++;
        return op;
    }

    uint32_t addComm(std::vector<uint32_t> ranks) {
        uint32_t index = arena.commCount++;
        Comm& comm = arena.comms[index];
        comm.inUse = comm.complete = 1;
        comm.size = static_cast<uint32_t>(ranks.size());
        comm.firstMember = arena.memberCount;
        for (uint32_t& head : comm.openTransfers) head = kNone;
        for (uint32_t rank : ranks) {
            arena.members[arena.memberCount++] = {rank, rank, 0, 1, 0, 0, 0};
            engine.mergeIslands(ranks.front(), rank);
        }
        classifyNodes(arena, comm);
        return index;
    }

    Op& submitTransfer(uint32_t stream, uint32_t comm, uint32_t member, int64_t hostNs, double busBytes, uint64_t key = 0) {
        Op& op = submit(stream, OpKind::transfer, hostNs, 0);
        Process& process = arena.processes[arena.streams[stream].process];
        auto index = static_cast<uint32_t>(&op - process.ops);
        Part& part = process.parts[index];
        part = Part{};
        part.process = arena.streams[stream].process;
        part.op = index;
        part.next = kNone;
        part.comm = comm;
        part.member = member;
        part.kind = TransferKind::allReduce;
        part.key = key;
        part.latencyNs = 1000;
        part.busBytes = busBytes;
        part.efficiency = 1;
        op.firstPart = index;
        op.pendingParts = 1;
        return op;
    }

    /// The rank's host waits for its stream, so it bounds nobody.
    void hostWaits(uint32_t rank, uint32_t stream) {
        HostThread& thread = arena.threads[rank];
        thread.waitKind = WaitKind::ops;
        thread.waitCount = 1;
        thread.waitStream[0] = stream;
        thread.waitSeq[0] = m_submitted[stream];
        thread.state = ThreadState::waiting;
    }

    /// The rank's host does nothing any more and bounds nobody.
    void hostSleeps(uint32_t rank) { arena.threads[rank].state = ThreadState::excluded; }

    void* m_memory;
    Arena& arena;
    Engine engine;
    std::map<uint32_t, uint64_t> m_submitted;
};

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
    submit(sb, OpKind::kernel, 0, 80'000);    // b is the straggler
    Op& first = submitTransfer(sa, comm, 0, 0, 2'000'000);
    Op& last = submitTransfer(sb, comm, 1, 0, 2'000'000);
    hostWaits(a, sa);
    hostWaits(b, sb);
    engine.advance(a);
    EXPECT_EQ(first.startNs, kLaunchNs);
    EXPECT_EQ(last.startNs, kLaunchNs + 80'000);
    EXPECT_EQ(last.endNs, last.startNs + 1000 + 10'000);    // alpha, then 2 MB at 200 GB/s
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
    EXPECT_EQ(shorter.endNs - shorter.startNs, 1000 + 10'000);             // half of 200 GB/s
    EXPECT_EQ(longer.endNs - longer.startNs, 1000 + 10'000 + 15'000);      // then 3 MB alone
}

TEST_F(EngineTest, severalNodesAreBoundByTheirNics) {
    uint32_t a = addRank(1), b = addRank(2), sa = addStream(a), sb = addStream(b);
    uint32_t comm = addComm({a, b});
    Op& op = submitTransfer(sa, comm, 0, 0, 4'000'000);
    submitTransfer(sb, comm, 1, 0, 4'000'000);
    hostWaits(a, sa);
    hostWaits(b, sb);
    engine.advance(a);
    EXPECT_EQ(op.endNs - op.startNs, 1000 + 100'000);    // one NIC of 40 GB/s per node
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
    EXPECT_EQ(kernel.endNs - kernel.startNs, 100'000 + 11'000 / 2);    // half speed for the 11 us of the transfer
}

TEST_F(EngineTest, membersThatDisagreeNeverGetOut) {
    uint32_t a = addRank(), b = addRank(), sa = addStream(a), sb = addStream(b);
    uint32_t comm = addComm({a, b});
    submitTransfer(sa, comm, 0, 0, 1000);
    Op& other = submitTransfer(sb, comm, 1, 0, 1000);
    arena.processes[b].parts[other.firstPart].fingerprint = 1;
    hostWaits(a, sa);
    hostWaits(b, sb);
    engine.advance(a);
    EXPECT_EQ(arena.streams[sa].finishedSeq.load(), 0u);
    EXPECT_EQ(arena.threads[a].state, ThreadState::waiting);
}

TEST_F(EngineTest, ranksWithoutACommonCommunicatorDoNotHoldEachOtherUp) {
    uint32_t a = addRank(), b = addRank(), sa = addStream(a);
    arena.threads[b].boundNs = 0;    // runs, and has done nothing yet
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
