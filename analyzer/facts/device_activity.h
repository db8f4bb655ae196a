// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/facts/intervals.h"

namespace rankscope::facts {

/// Holds a rank's device activity by category, over the whole recording.
struct DeviceActivity {
    IntervalSet compute;   // C: kernels that compute
    IntervalSet transfer;  // NCCL kernels (N) behind their wait window
    IntervalSet wait;      // wait windows of NCCL kernels
    IntervalSet memory;    // M: copies and sets
};

}  // namespace rankscope::facts
