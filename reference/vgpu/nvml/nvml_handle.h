// SPDX-License-Identifier: Apache-2.0
// What NVML's functions have in common. Declared here by NVIDIA's NVML API Reference Guide (R470 to R580); its header
// is not needed to build.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/vgpu/device/machine.h"

namespace rankscope::vgpu::nvml {

enum Result : int {
    kSuccess = 0,
    kUninitialized = 1,
    kInvalidArgument = 2,
    kNotSupported = 3,
    kNotFound = 6,
    kInsufficientSize = 7,
    kDriverNotLoaded = 9
};

/// How often nvmlInit was called more than nvmlShutdown.
inline int g_begun = 0;

/// Handles are numbers from 1.
inline void* handleOf(uint32_t index) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
}
inline uint32_t indexOf(void* device) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(device)) - 1;
}

inline uint32_t deviceCount() {
    return static_cast<uint32_t>(std::max(0, describedCluster().ranksPerNode));
}

inline int check(void* device) {
    if (g_begun == 0) return kUninitialized;
    const auto number = reinterpret_cast<uintptr_t>(device);
    return number >= 1 && number <= deviceCount() ? kSuccess : kInvalidArgument;
}

inline int answer(void* device, uint32_t* into, uint32_t value) {
    if (const int result = check(device); result != kSuccess) return result;
    if (!into) return kInvalidArgument;
    *into = value;
    return kSuccess;
}

}  // namespace rankscope::vgpu::nvml
