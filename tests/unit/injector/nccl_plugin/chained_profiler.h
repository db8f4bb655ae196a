// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the plugin of chained_profiler.cpp saw since its last init.
struct ChainedProfilerLog {
    int lastVersion;
    int starts, stops, states, finalized;
    int lastState;
    int foreignHandles;  ///< handles or contexts that it did not give out
    const void* handleOfFirst;
    const void* parentOfLast;
    const void* groupOfLast;     ///< v5
    unsigned long long userTag;  ///< of the last collective, v7
};
