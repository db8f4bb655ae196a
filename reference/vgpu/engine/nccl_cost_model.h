// SPDX-License-Identifier: Apache-2.0
// Which algorithm and protocol a collective takes, and what it then costs: latency, and bus bytes over the share of the
// links' rate that it reaches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "reference/vgpu/engine/cluster.h"
#include "reference/vgpu/engine/nccl_rules.h"
#include "reference/vgpu/engine/nccl_tuning.h"

namespace rankscope::vgpu {

struct CollectiveCost {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
    int channels = 1;
    int64_t latencyNs = 0;
    double busBytes = 0;
    double efficiency = 1;    ///< share of what the links allow
    double networkShare = 1;  ///< of the bus bytes, over the NICs of a node
    double chunkBytes = 0;    ///< what a ring passes on per hop, in all channels together; 0: no ring of chunks
};

/// What NCCL hands to a tuner plugin: predicted microseconds, kUnavailable where a choice does not exist or is
/// forbidden.
using CostTable = std::array<std::array<float, kProtocols>, kAlgorithms>;
inline constexpr float kUnavailable = -1;

/// Bytes of the bus bandwidth convention; `bytes` is the whole buffer (all-gather, reduce-scatter: all chunks
/// together).
double busBytesOf(TransferKind function, uint32_t ranks, double bytes);

/// Whether NCCL has this combination for this function on these ranks.
bool isAvailable(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
                 Protocol protocol);

CollectiveCost costOf(const Cluster& cluster, const CommShape& shape, TransferKind function, double bytes,
                      Algorithm algorithm, Protocol protocol);

CostTable costTable(const Cluster& cluster, const CommShape& shape, const AlgorithmRules& rules, TransferKind function,
                    double bytes);

/// The cheapest entry of a table, at what it takes in the cluster's world; nothing if none is available.
std::optional<CollectiveCost> cheapest(const CostTable& table, const Cluster& cluster, const CommShape& shape,
                                       TransferKind function, double bytes);

/// The cheapest allowed choice; nothing if the rules leave none.
std::optional<CollectiveCost> chooseCollective(const Cluster& cluster, const CommShape& shape,
                                               const AlgorithmRules& rules, TransferKind function, double bytes);

}  // namespace rankscope::vgpu
