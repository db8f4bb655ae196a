// SPDX-License-Identifier: Apache-2.0
// Where a rank's step went, to the nanosecond: computeNs + exposedCommNs() + memoryNs + idleNs == stepNs.
#pragma once

#include <cstdint>

#include "analyzer/facts/intervals.h"

namespace rankscope::facts {

struct Attribution {
    int64_t stepNs = 0;
    int64_t computeNs = 0;          // |C|, the time with hidden communication included
    int64_t exposedWaitNs = 0;      // part of |N \ C| in which every running NCCL kernel waits for others
    int64_t exposedTransferNs = 0;  // the rest of |N \ C|
    int64_t lateTransferNs = 0;     // part of exposedTransferNs: exposed only because other ranks came late
    int64_t unsplitNs = 0;          // part of both: waiting or transfer, which of them is unknown
    int64_t overlappedCommNs = 0;   // |N and C|, part of computeNs
    int64_t memoryNs = 0;           // |M \ (C or N)|
    int64_t idleNs = 0;

    int64_t exposedCommNs() const { return exposedWaitNs + exposedTransferNs; }
    Attribution& operator+=(const Attribution& other);
};

/// A rank's device activity by category, whole recording.
struct DeviceActivity {
    IntervalSet compute;   // C
    IntervalSet transfer;  // NCCL kernels behind their wait window
    IntervalSet wait;      // wait windows of NCCL kernels
    IntervalSet memory;    // M
};

/// Attribution of the window [startNs, endNs), and its idle intervals.
Attribution attribute(const DeviceActivity& activity, int64_t startNs, int64_t endNs, IntervalSet* idle = nullptr);

}  // namespace rankscope::facts
