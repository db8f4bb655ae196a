// SPDX-License-Identifier: Apache-2.0
// Who uses which link end, and how fast a flow runs: every flow on a port gets an equal share of it, the slowest port
// decides.
#pragma once

#include <optional>
#include <vector>

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

/// Enters (direction +1) or leaves (-1) the ports a transfer's flow uses.
void countFlow(Arena& arena, const Transfer& transfer, int direction);

/// Bytes per ns the flow gets while the ports are used as they are now.
double flowRate(const Arena& arena, const Transfer& transfer);

/// By how many chunks of the pipeline each member of a ring inside one node leaves before the last: of the time a chunk
/// takes over the slowest edge, less what it takes over the fastest. Empty when all edges are equally fast, or the ring
/// leads through several nodes.
std::vector<double> ringLeads(const Arena& arena, const Comm& comm);

/// A member's ends of its communicator's way from node to node: whom its NIC sends to and receives from, and what such
/// an edge carries alone, in bytes per ns.
struct NetworkEdges {
    uint32_t sendsTo, receivesFrom;
    double sendRate, receiveRate;
};
/// Nothing inside one node, and for members of a node that has more than the smallest one, which are on no rail.
std::optional<NetworkEdges> networkEdges(const Arena& arena, const Comm& comm, uint32_t member);

/// Bytes per ns of a collective's bus bandwidth while nothing else uses its links; `networkShare` of its bytes cross a
/// node's NICs.
double rateAlone(const Arena& arena, const Comm& comm, double networkShare);

/// A number that changes whenever the rate of a message's flow may have.
uint32_t portChanges(const Arena& arena, const Transfer& transfer);

/// Fills nodes, smallestNode and the pair links of a communicator whose members are all known. Its ring visits the
/// members of a node in order of rank and goes from node to node once per rail: the i-th member of a node talks to the
/// i-th of the next.
void classifyNodes(Arena& arena, Comm& comm);

}  // namespace rankscope::vgpu
