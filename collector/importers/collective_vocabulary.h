// SPDX-License-Identifier: Apache-2.0
// What other tools call collectives and element types, in the words of trace.db.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collector/store/vocabulary.h"

namespace rankscope::collector {

inline constexpr int64_t kMostRanks = 1 << 24;  ///< of a group: more is damage

/// torch.distributed's "Collective name" or the name behind "nccl:" in its annotations. unknown for what is no transfer
/// ("wait") or not listed.
store::Op opFromTorchName(std::string_view name);
/// "Float", "BFloat16" (Collective's dtype) or "float", "c10::BFloat16" (Input type).
store::DataType dataTypeFromTorchName(std::string_view name);

/// "AllReduce", "Send": as NCCL's own plugins name operations; unknown for any other name.
store::Op opFromNcclName(std::string_view name);
/// "RING", "NVLS_TREE", "LL128": an algorithm or a protocol, ours in capitals; unknown for any other name.
template <typename Word>
Word wordFromNcclName(std::string_view name) {
    std::string text(name);
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return store::fromText<Word>(text);
}

/// "nccl:all_reduce", "nccl:send 0->1": the annotation torch.distributed puts around a call.
struct CollectiveAnnotation {
    store::Op op = store::Op::unknown;
    std::optional<int32_t> peer;  ///< of send and recv
};
std::optional<CollectiveAnnotation> parseCollectiveAnnotation(std::string_view name);

/// Bytes as nccl-tests counts them, from the elements one rank hands in and gets back. Empty when that cannot be told.
std::optional<int64_t> collectiveBytes(store::Op op, store::DataType type, std::optional<int64_t> inElements,
                                       std::optional<int64_t> outElements, std::optional<int64_t> ranks);

}  // namespace rankscope::collector
