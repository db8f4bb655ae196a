// SPDX-License-Identifier: Apache-2.0
// The tables of HolisticTraceAnalysis 0.5 (Meta, MIT licence), by its definitions, for those who compare with it.
#pragma once

#include <vector>

#include "analyzer/stats/stats_table.h"
#include "collector/store/reader.h"

namespace rankscope::stats {

/// `temporal_breakdown`, `communication_overlap`, `idle_breakdown`, `kernel_breakdown` and `queue_length`, in
/// microseconds. As HTA does, and as nothing else here does: the last ProfilerStep is dropped where there are several,
/// and with it what was launched in it or before the recording began; times are rounded to whole microseconds, starts
/// up and ends down; communication is what is named like NCCL's kernels, and waits of streams for events count as
/// computation. Where HTA joins a kernel without a launch to an unrelated row, its gap is 'other' here.
std::vector<StatsTable> htaTables(store::TraceReader& trace);

}  // namespace rankscope::stats
