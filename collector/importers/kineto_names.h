// SPDX-License-Identifier: Apache-2.0
// Texts in which Kineto wraps CUPTI's enums.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rankscope::collector {

/// Kind and memories of a copy, from "Memcpy HtoD (Pinned -> Device)" or ROCm's "HtoD".
struct CopyText {
    int32_t kind = 0;  ///< CUpti_ActivityMemcpyKind, 0 unknown
    std::optional<int32_t> srcMemory;
    std::optional<int32_t> dstMemory;
};
CopyText parseCopy(std::string_view name, std::string_view kind);

/// CUpti_ActivitySynchronizationType of "Stream Sync", 0 unknown.
int32_t parseSynchronizationKind(std::string_view text);

/// Elements of the first tensor in "Input Dims": [[8, 1024], []] gives 8192. Empty when the first entry is no tensor,
/// or a list of tensors.
std::optional<int64_t> firstTensorElements(std::string_view dims);
/// The first entry of "Input type": ["float", ""] gives float.
std::string_view firstInputType(std::string_view types);

/// "[0, 1, 2]" as numbers; empty when the list is abbreviated ("[0, 1, ..., 7]") or no list.
std::vector<int64_t> parseRanks(std::string_view text);

}  // namespace rankscope::collector
