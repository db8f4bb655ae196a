// SPDX-License-Identifier: Apache-2.0
// What a rank's device did over the whole recording, small enough to be drawn for all ranks before the events of any
// are read: table rank_activity of trace.db.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/facts/device_activity.h"

namespace rankscope::facts {

/// Names what a device does at a time, as Attribution counts it: the rest is idle. In trace.db by number: never
/// renumbered.
enum class Activity : uint8_t {
    compute,     // kernels that compute, without communication
    overlapped,  // the same, beside communication
    waiting,     // nothing but NCCL kernels that wait for other ranks, where how long they wait is recorded
    transfer,    // nothing but NCCL kernels, one of which at least does not wait, or not as far as is known
    memory,      // nothing but copies and sets
};

/// Holds the shares of what a device did in even bins of time, from its first to its last activity.
struct ActivityLine {
    static constexpr size_t kBins = 2048;                  // as many as a line of the timeline has pixels, or nearly
    static constexpr size_t kKinds = 5;                    // of Activity
    static constexpr int64_t kFarthestNs = INT64_MAX / 8;  // 36 years: sums of times nearer than it do not overflow
    /// By Activity; 255: all of the bin, 1: some of it, however little. Each is rounded by itself.
    using Bin = std::array<uint8_t, kKinds>;

    int64_t startNs = 0;
    int64_t binNs = 0;      // length of a bin
    std::vector<Bin> bins;  // kBins; none where the device did nothing
};

/// Empty where the device did nothing, or its times are farther than kFarthestNs. Linear in the members of the sets
/// and the bins.
ActivityLine activityLine(const DeviceActivity& activity);

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(ActivityLine& value, const Visit& visit) {
    visit(value.startNs, value.binNs, value.bins);
}

}  // namespace rankscope::facts
