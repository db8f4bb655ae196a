// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/nvtx_pairing.h"
#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {

/// One row per call, whoever saw it. A call CUPTI saw is CUPTI's row (it has the correlation id), and the hook's record
/// of the same call, which goes on around it on the same thread, only adds its argument; what CUPTI did not see stays
/// as the hook's row. A driver call that shares its correlation id with the runtime call around it is left out.
/// Allocations are made of the hooked calls alone. `threadOfTid` gets an entry for every thread that only CUPTI names.
void mergeApiCalls(const RawCapture& raw, const ThreadOfRing& threads,
                   std::unordered_map<int64_t, int32_t>& threadOfTid, RankRecording& recording);

}  // namespace rankscope::collector
