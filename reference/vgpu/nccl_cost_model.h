// SPDX-License-Identifier: Apache-2.0
// Which algorithm and protocol a collective takes, and what it then costs: alpha per hop plus bus bytes over the link rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/vgpu/arena.h"
#include "reference/vgpu/cluster.h"

namespace rankscope::vgpu {

enum class Algorithm : uint8_t { tree = 0, ring = 1 };
enum class Protocol : uint8_t { ll = 0, ll128 = 1, simple = 2 };
inline constexpr int kAlgorithms = 2, kProtocols = 3;

const char* nameOf(Algorithm algorithm);    // "TREE", "RING"
const char* nameOf(Protocol protocol);      // "LL", "LL128", "SIMPLE"

/// The ranks of a communicator as the cost model sees them.
struct CommShape {
    uint32_t size = 1, nodes = 1, smallestNode = 1;
};

/// What NCCL_ALGO and NCCL_PROTO allow, per function.
class AlgorithmRules {
  public:
    /// Syntax of NCCL 2.24 and later: `list[;func:list...]`, `^` inverts. Null: everything allowed. False if a token is unknown.
    bool parse(const char* algorithms, const char* protocols);
    bool allows(TransferKind function, Algorithm algorithm, Protocol protocol) const;

  private:
    static constexpr int kFunctions = 5;
    uint32_t m_algorithms[kFunctions] = {~0u, ~0u, ~0u, ~0u, ~0u};
    uint32_t m_protocols[kFunctions] = {~0u, ~0u, ~0u, ~0u, ~0u};
};

struct CollectiveCost {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
    int channels = 1;
    int64_t latencyNs = 0;
    double busBytes = 0;
    double efficiency = 1;
};

/// Bytes of the bus bandwidth convention; `bytes` is the whole buffer (all-gather, reduce-scatter: all chunks together).
double busBytesOf(TransferKind function, uint32_t ranks, double bytes);

CollectiveCost costOf(const Cluster& cluster, const CommShape& shape, TransferKind function, double bytes, Algorithm algorithm, Protocol protocol);

/// The cheapest allowed choice; nothing if the rules leave none.
std::optional<CollectiveCost> chooseCollective(const Cluster& cluster, const CommShape& shape, const AlgorithmRules& rules, TransferKind function,
                                               double bytes);

}  // namespace rankscope::vgpu
