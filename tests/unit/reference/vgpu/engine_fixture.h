// SPDX-License-Identifier: Apache-2.0
// A virtual job in the memory of one process, driven by hand: what the engine and link tests build their cases from.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/engine.h"
#include "reference/vgpu/engine/links.h"

namespace rankscope::vgpu {

inline constexpr int64_t kLaunchNs = 6000;

/// Ranks of one GPU and one host thread each, in memory of this process alone.
class EngineTest : public testing::Test {
  protected:
    EngineTest()
        : m_memory(
              mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
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
        process.island = process.family = p;
        process.nextOfIsland = process.firstStream = process.firstFlow = kNone;
        process.firstThread = p;
        HostThread& thread = arena.threads[p];
        arena.threadCount++;
        thread.process = p;
        thread.nextOfProcess = kNone;
        thread.deadlineNs = kForever;
        thread.hasActed = 1;
        thread.state = ThreadState::running;
        Device& device = arena.devices[p];
        arena.deviceCount++;
        device = Device{};
        device.process = p;
        device.rank = process.rank;
        device.hostKey = hostKey;
        device.slowedRate = 0.5;
        device.slowedTraffic = 1;
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
        Queues& queues = arena.queues[arena.streams[stream].process];
        Op& op = queues.ops[index];
        op.kind = kind;
        op.contended = kind == OpKind::kernel;
        op.stream = stream;
        op.seq = ++m_submitted[stream];
        op.readyNs = hostNs + kLaunchNs;
        op.workNs = workNs;
        op.firstPart = kNone;
        queues.submission[index] = index;
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

    Op& submitTransfer(uint32_t stream, uint32_t comm, uint32_t member, int64_t hostNs, double busBytes,
                       uint64_t key = 0) {
        Op& op = submit(stream, OpKind::transfer, hostNs, 0);
        Queues& queues = arena.queues[arena.streams[stream].process];
        auto index = static_cast<uint32_t>(&op - queues.ops);
        Part& part = queues.parts[index];
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
        part.networkShare = 1;
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
    void hostSleeps(uint32_t rank) { arena.threads[rank].state = ThreadState::observing; }

    /// Another host thread of the rank, which runs.
    HostThread& addThread(uint32_t rank, int64_t boundNs) {
        HostThread& thread = arena.threads[kFirstExtraThread + m_extraThreads++];
        arena.threadCount = kFirstExtraThread + m_extraThreads;
        thread.process = rank;
        thread.tid = static_cast<int32_t>(100 + m_extraThreads);
        thread.number = m_extraThreads;
        thread.deadlineNs = kForever;
        thread.hasActed = 1;
        thread.boundNs = boundNs;
        thread.nextOfProcess = arena.processes[rank].firstThread;
        arena.processes[rank].firstThread = static_cast<uint32_t>(&thread - arena.threads);
        thread.state = ThreadState::running;
        return thread;
    }

    static constexpr uint32_t kFirstExtraThread = 64;
    uint32_t m_extraThreads = 0;
    void* m_memory;
    Arena& arena;
    Engine engine;
    std::map<uint32_t, uint64_t> m_submitted;
};

}  // namespace rankscope::vgpu
