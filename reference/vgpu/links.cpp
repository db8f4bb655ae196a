// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/links.h"

#include <algorithm>
#include <unordered_map>

namespace rankscope::vgpu {
namespace {

Device& deviceOf(Arena& arena, const Comm& comm, uint32_t rank) { return arena.devices[arena.members[comm.firstMember + rank].device]; }
const Device& deviceOf(const Arena& arena, const Comm& comm, uint32_t rank) {
    return arena.devices[arena.members[comm.firstMember + rank].device];
}

double share(const Port& port) { return port.rate / std::max(1u, port.flows); }

}  // namespace

void countFlow(Arena& arena, const Transfer& transfer, int direction) {
    const Comm& comm = arena.comms[transfer.comm];
    auto delta = static_cast<uint32_t>(direction);    // wraps to -1
    if (transfer.kind == TransferKind::p2p) {
        Device& from = deviceOf(arena, comm, transfer.src);
        Device& to = deviceOf(arena, comm, transfer.dst);
        bool sameNode = from.hostKey == to.hostKey;
        (sameNode ? from.out : from.nicOut).flows += delta;
        (sameNode ? to.in : to.nicIn).flows += delta;
        return;
    }
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        Device& device = deviceOf(arena, comm, rank);
        device.out.flows += delta;
        device.in.flows += delta;
        if (comm.nodes > 1) {
            device.nicOut.flows += delta;
            device.nicIn.flows += delta;
        }
    }
}

double flowRate(const Arena& arena, const Transfer& transfer) {
    const Comm& comm = arena.comms[transfer.comm];
    if (transfer.kind == TransferKind::p2p) {
        const Device& from = deviceOf(arena, comm, transfer.src);
        const Device& to = deviceOf(arena, comm, transfer.dst);
        bool sameNode = from.hostKey == to.hostKey;
        return transfer.efficiency * (sameNode ? std::min(share(from.out), share(to.in)) : std::min(share(from.nicOut), share(to.nicIn)));
    }
    double rate = 1e30;
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        const Device& device = deviceOf(arena, comm, rank);
        rate = std::min({rate, share(device.out), share(device.in)});
        if (comm.nodes > 1) rate = std::min(rate, comm.smallestNode * std::min(share(device.nicOut), share(device.nicIn)));
    }
    return rate * transfer.efficiency;
}

void classifyNodes(Arena& arena, Comm& comm) {
    std::unordered_map<uint64_t, uint32_t> members;    // only counted, never iterated in an order that matters
    for (uint32_t rank = 0; rank < comm.size; rank++) members[deviceOf(arena, comm, rank).hostKey]++;
    comm.nodes = static_cast<uint32_t>(members.size());
    comm.smallestNode = comm.size;
    for (const auto& [host, count] : members) comm.smallestNode = std::min(comm.smallestNode, count);
}

}  // namespace rankscope::vgpu
