// SPDX-License-Identifier: Apache-2.0
// NCCL's algorithms and protocols, and which of them NCCL_ALGO and NCCL_PROTO leave for each function.
#pragma once

#include <cstdint>

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

// Numbers are NCCL's: a tuner plugin's table is indexed by them.
enum class Algorithm : uint8_t {
    tree = 0,
    ring = 1,
    collnetDirect = 2,
    collnetChain = 3,
    nvls = 4,
    nvlsTree = 5,
    pat = 6
};
enum class Protocol : uint8_t { ll = 0, ll128 = 1, simple = 2 };
inline constexpr int kAlgorithms = 7, kProtocols = 3;

const char* nameOf(Algorithm algorithm);  // "TREE", "RING", …, as NCCL reports them to plugins
const char* nameOf(Protocol protocol);    // "LL", "LL128", "SIMPLE"

/// NCCL's number of a collective (ncclFunc_t): Broadcast 0, Reduce 1, AllGather 2, ReduceScatter 3, AllReduce 4.
int functionIndex(TransferKind function);
inline constexpr int kTunedFunctions = 5;

class AlgorithmRules {
  public:
    /// Syntax of NCCL 2.24 and later: `list[;func:list...]`, `^` inverts. Null: everything allowed. False if a token is
    /// unknown.
    bool parse(const char* algorithms, const char* protocols);
    bool allows(TransferKind function, Algorithm algorithm, Protocol protocol) const;
    /// True where the user said which protocols there are for it: what NCCL leaves out by itself, it then has.
    bool namesProtocols(TransferKind function) const;

  private:
    uint32_t m_algorithms[kTunedFunctions] = {~0u, ~0u, ~0u, ~0u, ~0u};
    uint32_t m_protocols[kTunedFunctions] = {~0u, ~0u, ~0u, ~0u, ~0u};
};

}  // namespace rankscope::vgpu
