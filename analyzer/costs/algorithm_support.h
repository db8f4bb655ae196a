// SPDX-License-Identifier: Apache-2.0
// Which algorithm and protocol NCCL has for which function and group (src/device/generate.py, src/graph/tuning.cc and
// docs/env.rst of NCCL 2.28).
#pragma once

#include <set>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/nccl_version.h"

namespace rankscope::costs {

/// A kind of communicator: groups of one shape behave alike.
struct GroupShape {
    int nodes = 1;
    int ranks = 1;
    auto operator<=>(const GroupShape&) const = default;
};
inline GroupShape shapeOf(const facts::Communicator& communicator) {
    return {communicator.nodes, communicator.size};
}

/// What the hardware was seen to do: NVLS, CollNet and LL128 depend on it, and a setting that asks for what is not
/// there fails the job or, with LL128, can corrupt data.
struct SeenChoices {
    std::set<store::Algorithm> algorithms;
    std::set<store::Protocol> protocols;
};

/// True when this NCCL has the combination for the function and the shape of the group, and nothing has to be taken on
/// trust from the hardware.
bool isSupported(store::Op op, GroupShape shape, AlgorithmChoice choice, const std::optional<NcclVersion>& version,
                 const SeenChoices& seen);

/// What NCCL may take by itself although nothing shows that the hardware has it: LL128, which NCCL enables on GPUs of
/// one kind under NVLink (tuning.cc). Not to be forced.
std::vector<AlgorithmChoice> unseenChoices(store::Op op, GroupShape shape, const SeenChoices& seen);

/// All of them.
std::vector<AlgorithmChoice> supportedChoices(store::Op op, GroupShape shape, const std::optional<NcclVersion>& version,
                                              const SeenChoices& seen);

}  // namespace rankscope::costs
