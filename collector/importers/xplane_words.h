// SPDX-License-Identifier: Apache-2.0
// What names of planes and operations and the details of events tell, as XLA's profiler writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collector/store/event_model.h"

namespace rankscope::collector {

/// Ordinal in the name of a device's plane ("/device:GPU:3"), -1 for one that no host has; empty for other planes.
std::optional<int64_t> ordinalOfPlane(std::string_view plane);

/// What an HLO instruction does among devices: "all-reduce.3", "%all-gather-start.1 = …"; unknown for what computes,
/// and for permutations, which are no collective of ours.
store::Op opOfHlo(std::string_view name);

/// The beginning of a collective that goes on beside what follows; its end is an instruction of its own.
bool isHloStart(std::string_view name);

/// Value of a word in "grid:160,1,1 block:128,1,1 size:65536"; empty where it is not there.
std::string_view wordIn(std::string_view details, std::string_view key);

/// Empty for what is no whole number.
std::optional<int64_t> wholeNumber(std::string_view text);

/// Product of "160,1,1"; empty for what is none.
std::optional<uint32_t> productIn(std::string_view factors);

/// CUpti_ActivityMemoryKind by the name in details of a copy.
std::optional<int32_t> memoryOf(std::string_view kind);

}  // namespace rankscope::collector
