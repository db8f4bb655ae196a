// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/track.h"

namespace rankscope::gui {

/// A call of the host that put work onto the device.
struct LaunchCall {
    int64_t thread = 0;
    int64_t startNs = 0;
    int64_t correlation = 0;
};

/// From the first to the last of what a call put onto the device.
struct LaunchedWork {
    int64_t correlation = 0;
    int64_t startNs = 0;
    int64_t endNs = 0;
};

/// A range that a thread of the host was in.
struct OpenRange {
    int64_t thread = 0;
    int64_t startNs = 0;
    int64_t endNs = 0;
    uint32_t name = 0;
    uint32_t row = 0;  ///< counted from the first row of the rank's ranges
};

/// A host's range as its device ran it.
struct DeviceRange {
    int64_t thread = 0;
    TrackEvent event;
};

/// Ranges of the host on the device: each from the begin of the first to the end of the last kernel, copy or set that
/// its thread called for while the range was open; those that called for nothing are not among them. By start, of equal
/// starts the longer first. n log n in all three, times the depth of the ranges.
std::vector<DeviceRange> rangesOnDevice(std::vector<OpenRange> ranges, std::vector<LaunchCall> calls,
                                        std::vector<LaunchedWork> work);

}  // namespace rankscope::gui
