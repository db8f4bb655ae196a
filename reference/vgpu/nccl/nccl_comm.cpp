// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/nccl_comm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "reference/vgpu/engine/links.h"
#include "reference/vgpu/nccl/profiler_plugin.h"

namespace rankscope::vgpu {
namespace {

// Bootstrap, topology search and channel set-up; also keeps a new communicator clear of what its members' islands have
// simulated.
constexpr int64_t kInitNs = 5'000'000, kInitPerRankNs = 20'000;

uint64_t hashOf(const unsigned char (&id)[128]) {
    uint64_t hash = 1469598103934665603ull;
    for (unsigned char byte : id) hash = (hash ^ byte) * 1099511628211ull;
    return mixHash(hash);
}

void complete(LocalProcess& process, Comm& comm, uint32_t index) {
    Arena& arena = process.arena();
    Engine engine = process.engine();
    comm.readyNs = 0;
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        const Member& member = arena.members[comm.firstMember + rank];
        comm.readyNs = std::max(comm.readyNs, member.arrivedNs);
        engine.mergeIslands(arena.members[comm.firstMember].process, member.process);
    }
    comm.readyNs += kInitNs + kInitPerRankNs * comm.size;
    classifyNodes(arena, comm);
    comm.complete = 1;
    for (uint32_t t = 0; t < arena.threadCount; t++) {
        HostThread& thread = arena.threads[t];
        if (thread.state == ThreadState::waiting && thread.waitKind == WaitKind::comm && thread.waitComm == index)
            engine.resume(thread, std::max(comm.readyNs, thread.boundNs.load()));
    }
    arena.progress.fetch_add(1);
}

}  // namespace

uint32_t joinComm(LocalProcess& process, const CommRequest& request, int64_t arrivedNs) {
    Arena& arena = process.arena();
    uint32_t device;
    {
        std::lock_guard guard(process.mutex());
        process.adoptRank(request.rank);
        device = process.device(request.device).shared;
    }
    SharedLock lock(arena.lock);
    uint32_t index = kNone;
    for (uint32_t c = arena.commCount; c-- > 0;)
        if (arena.comms[c].inUse && !arena.comms[c].complete &&
            std::memcmp(arena.comms[c].id, request.id, sizeof request.id) == 0)
            index = c;
    if (index == kNone) {
        if (arena.commCount == kMaxComms) refuseMore("communicators", kMaxComms);
        if (arena.memberCount + static_cast<uint32_t>(request.size) > kMaxMembers)
            refuseMore("members of communicators", kMaxMembers);
        index = arena.commCount++;
        Comm& fresh = arena.comms[index];
        fresh.inUse = 1;
        std::memcpy(fresh.id, request.id, sizeof fresh.id);
        fresh.hash = hashOf(request.id);
        fresh.size = static_cast<uint32_t>(request.size);
        fresh.firstMember = arena.memberCount;
        std::fill(std::begin(fresh.openTransfers), std::end(fresh.openTransfers), kNone);
        std::fill(std::begin(arena.openExchanges[index]), std::end(arena.openExchanges[index]), kNone);
        arena.memberCount += fresh.size;
    }
    Comm& comm = arena.comms[index];
    Member& member = arena.members[comm.firstMember + static_cast<uint32_t>(request.rank)];
    if (comm.size != static_cast<uint32_t>(request.size) || member.joined) return kNone;
    member = {process.index(), device, arrivedNs, 1, 0, request.color, request.key};
    if (++comm.joined == comm.size) complete(process, comm, index);
    return index;
}

ncclResult_t completeComm(LocalProcess& process, const CommRequest& request, uint32_t shared) {
    Arena& arena = process.arena();
    if (!process.waitForComm(shared)) return ncclInternalError;
    const Comm& comm = arena.comms[shared];
    // One GPU must not appear twice, as NCCL insists.
    for (uint32_t rank = 0; rank < comm.size; rank++)
        for (uint32_t other = 0; other < rank; other++)
            if (arena.members[comm.firstMember + rank].device == arena.members[comm.firstMember + other].device)
                return ncclInvalidUsage;
    auto* handle = new ncclComm;
    handle->shared = shared;
    handle->rank = request.rank;
    handle->size = request.size;
    handle->device = request.device;
    handle->hash = comm.hash;
    handle->name = request.name;
    handle->shape = {comm.size, comm.nodes, comm.smallestNode};
    handle->sends.resize(comm.size);
    handle->receives.resize(comm.size);
    if (!handle->rules.parse(std::getenv("NCCL_ALGO"), std::getenv("NCCL_PROTO"))) {
        delete handle;
        return ncclInvalidUsage;
    }
    if (ncclResult_t result = handle->tuner.open(process.cluster(), handle->shape, handle->hash);
        result != ncclSuccess) {
        delete handle;
        return result;
    }
    openProfiler(*handle);
    *request.result = handle;
    return ncclSuccess;
}

std::vector<StreamPoint> pendingOn(LocalProcess& process, const ncclComm& comm) {
    std::lock_guard guard(process.mutex());
    return comm.pending;
}

void abortPending(LocalProcess& process, ncclComm& comm) {
    *comm.aborted = true;
    const std::vector<StreamPoint> pending = pendingOn(process, comm);
    SharedLock lock(process.arena().lock);
    for (StreamPoint point : pending) process.engine().abortTransfers(point.stream, comm.shared, process.clock().ns);
    process.engine().advance(process.index());
}

void leaveComm(LocalProcess& process, const ncclComm& comm) {
    SharedLock lock(process.arena().lock);
    Arena& arena = process.arena();
    arena.members[arena.comms[comm.shared].firstMember + static_cast<uint32_t>(comm.rank)].left = 1;
}

bool waitsForDeadMember(LocalProcess& process, const ncclComm& comm) {
    if (process.haveEnded(pendingOn(process, comm))) return false;
    const Arena& arena = process.arena();
    const Member* members = arena.members + arena.comms[comm.shared].firstMember;
    for (int rank = 0; rank < comm.size; rank++) {
        if (members[rank].left) continue;
        const Process& peer = arena.processes[members[rank].process];
        if (!peer.alive || !processLives(peer.pid, peer.startTime)) return true;
    }
    return false;
}

}  // namespace rankscope::vgpu
