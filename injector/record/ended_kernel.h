// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::injector {

/// A kernel that ended on a device.
struct EndedKernel {
    const char* name;  ///< never null
    int64_t startNs;
    int64_t endNs;
    uint32_t gridBlocks;
    uint16_t blockThreads;
    uint16_t stream;  ///< StreamRecord::index
    uint16_t device;  ///< CUDA ordinal
};

}  // namespace rankscope::injector
