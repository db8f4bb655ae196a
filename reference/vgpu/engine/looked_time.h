// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace rankscope::vgpu {

/// Real time, in ms, for as long as somebody looks: of the time between two looks no more counts than `longestMs`. On a
/// machine that lets nobody look for so long nobody could act either.
struct LookedTime {
    int64_t lastMs, countedMs;

    void begin(int64_t nowMs) {
        lastMs = nowMs;
        countedMs = 0;
    }
    int64_t look(int64_t nowMs, int64_t longestMs) {
        countedMs += std::min(nowMs - lastMs, longestMs);
        lastMs = nowMs;
        return countedMs;
    }
};

}  // namespace rankscope::vgpu
