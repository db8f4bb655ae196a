// SPDX-License-Identifier: Apache-2.0
// What a rank's device did over the whole recording, small enough to be drawn for all ranks before the events of any
// are read: table rank_activity of trace.db.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/facts/intervals.h"

namespace rankscope::facts {

/// Holds a rank's device activity by category, over the whole recording.
struct DeviceActivity {
    IntervalSet compute;   // C
    IntervalSet transfer;  // NCCL kernels behind their wait window
    IntervalSet wait;      // wait windows of NCCL kernels
    IntervalSet memory;    // M
};

/// Holds the shares of what a device did in even bins of time, from its first to its last activity.
struct ActivityLine {
    static constexpr size_t kBins = 2048;  // a line of the timeline has fewer pixels on most screens
    // compute without communication, compute beside communication, waiting for other ranks alone, transfer alone,
    // copies and sets alone: as Attribution counts them. The rest of a bin is idle.
    static constexpr size_t kKinds = 5;
    using Bin = std::array<uint8_t, kKinds>;  // 255: all of the bin; 1: some of it, however little

    int64_t startNs = 0;
    int64_t binNs = 0;      // length of a bin
    std::vector<Bin> bins;  // kBins; none where the device did nothing
};

/// Linear in the members of the sets and the bins.
ActivityLine activityLine(const DeviceActivity& activity);

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(ActivityLine& value, const Visit& visit) {
    visit(value.startNs, value.binNs, value.bins);
}

}  // namespace rankscope::facts
