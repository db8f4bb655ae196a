// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {

/// Local thread index by the ring index a record carries.
using ThreadOfRing = std::unordered_map<uint32_t, int32_t>;

/// Makes ranges of pushes and pops (a stack per thread and domain), starts and ends (by their id), and marks. A range
/// that was never closed has no duration; a pop without a push is dropped and counted in `unpaired`.
std::vector<store::NvtxRange> pairNvtx(const RawCapture& raw, const ThreadOfRing& threads, int64_t& unpaired);

}  // namespace rankscope::collector
