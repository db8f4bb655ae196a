// SPDX-License-Identifier: Apache-2.0
// How much of its device's memory each rank came to hold.
#pragma once

#include <string>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"
#include "collector/store/reader.h"

namespace rankscope::report {

/// Reads the peaks of all ranks that anything is known of, by rank. Linear in the allocation calls.
std::vector<MemoryRow> readMemory(store::TraceReader& reader, const job::Analysis& analysis);

/// The largest of what is known of its peak; null where nothing is.
std::optional<int64_t> peakOf(const MemoryRow& row);
/// What is left beside the peak; null where the device's memory or the peak is unknown. Below 0: the device can lend
/// memory of the host.
std::optional<int64_t> marginOf(const MemoryRow& row);
/// "cudaMalloc", "NVML", "the trace": who told the peak.
std::string_view sourceOf(const MemoryRow& row);

/// Says which rank comes nearest to its device's limit: "memory: rank 3 comes nearest to its device's limit, 61.2 of
/// 79.6 GiB by cudaMalloc, 18.4 GiB left". Empty where no rank's is known. One line without a full stop.
std::string memoryText(const std::vector<MemoryRow>& rows);

}  // namespace rankscope::report
