// SPDX-License-Identifier: Apache-2.0
// NCCL's public tuning model (2.28, src/graph/tuning.cc): what an algorithm and a protocol take before bytes flow, and
// which share of the links they reach. NCCL's latencies are those of NVIDIA's own machines; here they give the
// proportions, and a cluster says what a hop takes. What the model leaves out, the ramp with the size of a message and
// NVLink SHARP's rate, is of published nccl-tests tables.
#pragma once

#include "reference/vgpu/engine/cluster.h"
#include "reference/vgpu/engine/nccl_rules.h"

namespace rankscope::vgpu {

/// The ranks of a communicator as the cost model sees them.
struct CommShape {
    uint32_t size = 1, nodes = 1, smallestNode = 1;
};

enum class HopKind : uint8_t { nvlink = 0, pcie = 1, network = 2 };

/// Sends and receives: NCCL has no algorithm for them.
bool isMessages(TransferKind function);

/// NCCL's own figures (ncclTunerConstantsDefaults): what a collective takes beside its hops, and a hop.
double baseLatencyUs(Algorithm algorithm, Protocol protocol);
double hopLatencyUs(HopKind kind, Algorithm algorithm, Protocol protocol);

/// How many times NCCL's figures a cluster's latencies are, inside a node and between nodes.
double nearScale(const Cluster& cluster);
double networkScale(const Cluster& cluster);

double latencyUs(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
                 Protocol protocol, double bytes);

/// A message's latency where each end has this many under way in one group.
double messageUs(const Cluster& cluster, bool sameNode, size_t messages);

/// The share of linkGbps() that a message of this size reaches; over 1 where the NVSwitch reduces.
double bandwidthShare(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
                      Protocol protocol, double bytes);

/// Bytes that cross the NICs of a node per byte of the bus bandwidth; 0 inside one node.
double networkShare(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm);

/// 1e9 bytes of bus bandwidth per second while nothing else uses the links, and no fault ails them.
double linkGbps(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm);

}  // namespace rankscope::vgpu
