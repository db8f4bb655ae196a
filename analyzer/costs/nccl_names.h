// SPDX-License-Identifier: Apache-2.0
// Translates NCCL's own names of functions, algorithms and protocols, as its variables, its tuner tables and nccl-tests
// spell them. Case does not matter.
#pragma once

#include <string>
#include <string_view>

#include "collector/store/vocabulary.h"

namespace rankscope::costs {

/// Reads "allreduce", "all_reduce", "AllReduce", "all_reduce_perf": unknown when it is none.
store::Op opOfName(std::string_view name);
/// Reads "Ring", "nvlstree": unknown when it is none.
store::Algorithm algorithmOfName(std::string_view name);
store::Protocol protocolOfName(std::string_view name);

/// Spells it as NCCL_ALGO does: "nvlstree"; empty for unknown.
std::string ncclName(store::Algorithm algorithm);
/// Spells it as tuner tables do: "nvls_tree" (plugins/tuner/example of NCCL).
std::string tunerName(store::Algorithm algorithm);
/// Spells it as NCCL_PROTO and tuner tables do: "ll128"; empty for unknown.
std::string ncclName(store::Protocol protocol);
/// Spells it as the per-function syntax and tuner tables do: "allreduce"; empty for what they do not cover.
std::string ncclName(store::Op op);

}  // namespace rankscope::costs
