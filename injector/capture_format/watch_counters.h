// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// What is told to whoever watches a living process: the one part of a .cap file that is written again. It means
/// nothing to a reader of records. Zero in .detail files.
struct WatchCounters {
    uint64_t progress;   ///< records so far which show that the process gets on (isProgress of record_traits.h)
    uint64_t slowSteps;  ///< steps so far that took longer than the job's owner allows (RANKSCOPE_SLOW_STEP)
    bool operator==(const WatchCounters&) const = default;
};
inline constexpr size_t kWatchCountersOffset = kFileHeaderBytes - 64;
static_assert(sizeof(WatchCounters) == 16 && sizeof(FileHeader) <= kWatchCountersOffset);

/// Of the capture file of a process that lives, or did. False when that is no such file.
bool readWatched(const char* captureFile, FileHeader& header, WatchCounters& counters);

}  // namespace rankscope::capture
