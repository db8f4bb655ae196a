// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/links.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <vector>

namespace rankscope::vgpu {
namespace {

// NCCL cuts a connection's buffer into 8 steps, of which a ring's chunk takes 4 (NCCL_STEPS, ALLREDUCE_CHUNKSTEPS).
constexpr uint32_t kBufferedChunks = 2;

Device& deviceOf(Arena& arena, const Comm& comm, uint32_t rank) {
    return arena.devices[arena.members[comm.firstMember + rank].device];
}
const Device& deviceOf(const Arena& arena, const Comm& comm, uint32_t rank) {
    return arena.devices[arena.members[comm.firstMember + rank].device];
}

void change(Port& port, uint32_t delta) {
    port.flows += delta;
    port.changes++;
}

double share(const Port& port) {
    return port.rate / std::max(1u, port.flows);
}

double besideCompute(const Device& device) {
    return device.residentKernels != 0 ? device.slowedTraffic : 1;
}

/// What a slow pair link of ends that allow `endsRate` gives each of its flows in one direction.
double share(const PairLink& link, double endsRate, uint32_t flows) {
    return std::min(endsRate, link.gbps > 0 ? link.gbps : endsRate * link.factor) / std::max(1u, flows);
}

/// Calls visit(pair index, is forward) for the slow pair links from one device to another.
template <typename Visit>
void forEachPair(const Arena& arena, const Device& from, const Device& to, Visit visit) {
    for (uint32_t i = 0; i < arena.pairLinkCount; i++) {
        const PairLink& link = arena.pairLinks[i];
        if (link.rankA == from.rank && link.rankB == to.rank) visit(i, true);
        if (link.rankB == from.rank && link.rankA == to.rank) visit(i, false);
    }
}

template <typename Visit>
void forEachBit(uint32_t bits, Visit visit) {
    for (; bits; bits &= bits - 1) visit(static_cast<uint32_t>(std::countr_zero(bits)));
}

/// How many bytes of the bus bandwidth go by while a byte crosses each NIC of the smallest node.
double railsOf(const Comm& comm, double networkShare) {
    return comm.smallestNode / networkShare;
}

/// What the slow pair links of a ring let through; `alone`: as if no other flow used them.
double ringPairLimit(const Arena& arena, const Comm& comm, double networkShare, bool alone) {
    double limit = 1e30;
    const Device& any = deviceOf(arena, comm, 0);
    auto consider = [&](uint32_t i, uint32_t flows) {
        const PairLink& link = arena.pairLinks[i];
        bool rail = comm.railPairs >> i & 1;  // each rail carries its part of what goes from node to node
        double ends = rail ? any.nicOut.rate : any.out.rate;
        limit = std::min(limit, share(link, ends, alone ? 1 : flows) * (rail ? railsOf(comm, networkShare) : 1));
    };
    forEachBit(comm.pairsForward, [&](uint32_t i) { consider(i, arena.pairLinks[i].forward); });
    forEachBit(comm.pairsBackward, [&](uint32_t i) { consider(i, arena.pairLinks[i].backward); });
    return limit;
}

/// Members by node, nodes in order of their first member.
std::vector<std::vector<uint32_t>> membersOfNodes(const Arena& arena, const Comm& comm) {
    std::unordered_map<uint64_t, size_t> nodeOfHost;  // looked up only, never iterated
    std::vector<std::vector<uint32_t>> nodes;
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        auto [it, fresh] = nodeOfHost.try_emplace(deviceOf(arena, comm, rank).hostKey, nodes.size());
        if (fresh) nodes.emplace_back();
        nodes[it->second].push_back(rank);
    }
    return nodes;
}

/// What the way from one member's NIC to another's carries alone.
double networkRate(const Arena& arena, const Comm& comm, uint32_t from, uint32_t to) {
    const Device& sender = deviceOf(arena, comm, from);
    const Device& receiver = deviceOf(arena, comm, to);
    const double ends = std::min(sender.nicOut.rate, receiver.nicIn.rate);
    double rate = ends;
    forEachPair(arena, sender, receiver,
                [&](uint32_t i, bool) { rate = std::min(rate, share(arena.pairLinks[i], ends, 1)); });
    return rate;
}

void addRingEdge(const Arena& arena, Comm& comm, uint32_t from, uint32_t to, bool rail) {
    if (from == to) return;
    forEachPair(arena, deviceOf(arena, comm, from), deviceOf(arena, comm, to), [&](uint32_t i, bool forward) {
        (forward ? comm.pairsForward : comm.pairsBackward) |= 1u << i;
        if (rail) comm.railPairs |= 1u << i;
    });
}

}  // namespace

void countFlow(Arena& arena, const Transfer& transfer, int direction) {
    const Comm& comm = arena.comms[transfer.comm];
    auto delta = static_cast<uint32_t>(direction);  // wraps to -1
    if (transfer.kind == TransferKind::p2p) {
        Device& from = deviceOf(arena, comm, transfer.src);
        Device& to = deviceOf(arena, comm, transfer.dst);
        bool sameNode = from.hostKey == to.hostKey;
        change(sameNode ? from.out : from.nicOut, delta);
        change(sameNode ? to.in : to.nicIn, delta);
        forEachPair(arena, from, to, [&](uint32_t i, bool forward) {
            (forward ? arena.pairLinks[i].forward : arena.pairLinks[i].backward) += delta;
        });
        return;
    }
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        Device& device = deviceOf(arena, comm, rank);
        change(device.out, delta);
        change(device.in, delta);
        if (comm.nodes > 1) {
            change(device.nicOut, delta);
            change(device.nicIn, delta);
        }
    }
    forEachBit(comm.pairsForward, [&](uint32_t i) { arena.pairLinks[i].forward += delta; });
    forEachBit(comm.pairsBackward, [&](uint32_t i) { arena.pairLinks[i].backward += delta; });
}

double flowRate(const Arena& arena, const Transfer& transfer) {
    const Comm& comm = arena.comms[transfer.comm];
    if (transfer.kind == TransferKind::p2p) {
        const Device& from = deviceOf(arena, comm, transfer.src);
        const Device& to = deviceOf(arena, comm, transfer.dst);
        bool sameNode = from.hostKey == to.hostKey;
        const Port& out = sameNode ? from.out : from.nicOut;
        const Port& in = sameNode ? to.in : to.nicIn;
        double rate = std::min(share(out), share(in));
        forEachPair(arena, from, to, [&](uint32_t i, bool forward) {
            const PairLink& link = arena.pairLinks[i];
            rate = std::min(rate, share(link, std::min(out.rate, in.rate), forward ? link.forward : link.backward));
        });
        return transfer.efficiency * rate * std::min(besideCompute(from), besideCompute(to));
    }
    double slowed = 1;
    double rate = ringPairLimit(arena, comm, transfer.networkShare, false);
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        const Device& device = deviceOf(arena, comm, rank);
        rate = std::min({rate, share(device.out), share(device.in)});
        slowed = std::min(slowed, besideCompute(device));
        if (comm.nodes > 1)
            rate = std::min(rate,
                            railsOf(comm, transfer.networkShare) * std::min(share(device.nicOut), share(device.nicIn)));
    }
    return rate * transfer.efficiency * slowed;
}

double rateAlone(const Arena& arena, const Comm& comm, double networkShare) {
    double rate = ringPairLimit(arena, comm, networkShare, true);
    for (uint32_t rank = 0; rank < comm.size; rank++) {
        const Device& device = deviceOf(arena, comm, rank);
        rate = std::min({rate, device.out.rate, device.in.rate});
        if (comm.nodes > 1)
            rate = std::min(rate, railsOf(comm, networkShare) * std::min(device.nicOut.rate, device.nicIn.rate));
    }
    return rate;
}

std::optional<NetworkEdges> networkEdges(const Arena& arena, const Comm& comm, uint32_t member) {
    if (comm.nodes < 2) return {};
    const std::vector<std::vector<uint32_t>> nodes = membersOfNodes(arena, comm);
    for (size_t node = 0; node < nodes.size(); node++) {
        const auto place = std::find(nodes[node].begin(), nodes[node].end(), member);
        if (place == nodes[node].end()) continue;
        const auto rail = static_cast<size_t>(place - nodes[node].begin());
        if (rail >= comm.smallestNode) return {};
        const uint32_t next = nodes[(node + 1) % nodes.size()][rail];
        const uint32_t previous = nodes[(node + nodes.size() - 1) % nodes.size()][rail];
        return NetworkEdges{next, previous, networkRate(arena, comm, member, next),
                            networkRate(arena, comm, previous, member)};
    }
    return {};
}

std::vector<double> ringLeads(const Arena& arena, const Comm& comm) {
    if (comm.nodes != 1 || comm.size < 3) return {};
    const uint32_t size = comm.size;
    std::vector<double> edges;  // from each member to the next
    for (uint32_t m = 0; m < size; m++) {
        const Device& from = deviceOf(arena, comm, m);
        const Device& to = deviceOf(arena, comm, (m + 1) % size);
        double rate = std::min(from.out.rate, to.in.rate);
        forEachPair(arena, from, to,
                    [&](uint32_t i, bool) { rate = std::min(rate, share(arena.pairLinks[i], rate, 1)); });
        edges.push_back(rate);
    }
    const auto [slowest, fastest] = std::minmax_element(edges.begin(), edges.end());
    const double difference = 1 - *slowest / *fastest;
    if (difference < 1e-6) return {};
    const auto hops = [&](uint32_t first, uint32_t step) {  // until a slowest edge
        uint32_t count = 0;
        for (uint32_t e = first; edges[e] > *slowest; e = (e + step) % size) count++;
        return count;
    };
    std::vector<double> leads;
    for (uint32_t m = 0; m < size; m++) {
        const uint32_t behind = hops((m + size - 1) % size,
                                     size - 1);  // each hop behind the slow edge lacks one chunk more of the last ones
        const uint32_t before = hops(m, 1);      // buffers let a sender be this far ahead
        leads.push_back(std::min(behind, kBufferedChunks * before) * difference);
    }
    return leads;
}

uint32_t portChanges(const Arena& arena, const Transfer& transfer) {
    const Comm& comm = arena.comms[transfer.comm];
    const Device& from = deviceOf(arena, comm, transfer.src);
    const Device& to = deviceOf(arena, comm, transfer.dst);
    // A slow pair link is only ever used together with a port at either end.
    return from.hostKey == to.hostKey ? from.out.changes + to.in.changes : from.nicOut.changes + to.nicIn.changes;
}

void classifyNodes(Arena& arena, Comm& comm) {
    const std::vector<std::vector<uint32_t>> nodes = membersOfNodes(arena, comm);
    comm.nodes = static_cast<uint32_t>(nodes.size());
    comm.smallestNode = comm.size;
    for (const auto& members : nodes)
        comm.smallestNode = std::min(comm.smallestNode, static_cast<uint32_t>(members.size()));
    comm.pairsForward = comm.pairsBackward = comm.railPairs = 0;
    if (arena.pairLinkCount == 0) return;
    for (size_t node = 0; node < nodes.size(); node++) {
        const std::vector<uint32_t>& members = nodes[node];
        const std::vector<uint32_t>& next = nodes[(node + 1) % nodes.size()];
        for (size_t i = 0; i < members.size(); i++)
            addRingEdge(arena, comm, members[i], members[(i + 1) % members.size()], false);
        for (size_t i = 0; i < comm.smallestNode && nodes.size() > 1; i++)
            addRingEdge(arena, comm, members[i], next[i], true);
    }
}

}  // namespace rankscope::vgpu
