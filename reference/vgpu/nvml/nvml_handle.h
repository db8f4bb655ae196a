// SPDX-License-Identifier: Apache-2.0
// What NVML's functions have in common. Declared here by NVIDIA's NVML API Reference Guide (R470 to R580); its header
// is not needed to build.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

inline uint32_t deviceCount() {
    return static_cast<uint32_t>(std::max(0, describedCluster().ranksPerNode));
}

/// The node of the calling process; one that is no rank, as a monitor of the whole job, is on the first.
uint32_t ownNode();

/// Handles are numbers from 1, node by node. A device's PCI domain is its node, so that a process beside the job can
/// ask for the devices of all its virtual nodes.
inline void* handleOf(uint32_t index, uint32_t node = ownNode()) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(node) * deviceCount() + index + 1);
}
inline uint32_t indexOf(void* device) {
    return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(device) - 1) % deviceCount());
}
inline uint32_t nodeOf(void* device) {
    return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(device) - 1) / deviceCount());
}
/// The rank that is placed there when ranks are dealt out in blocks.
inline int rankOf(void* device) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(device)) - 1;
}

inline int check(void* device) {
    if (g_begun == 0) return kUninitialized;
    const auto number = reinterpret_cast<uintptr_t>(device);
    const auto nodes = static_cast<uintptr_t>(std::max(1, describedCluster().nodes));
    return number >= 1 && number <= nodes * deviceCount() ? kSuccess : kInvalidArgument;
}

template <typename Number>
int answer(void* device, Number* into, std::type_identity_t<Number> value) {
    if (const int result = check(device); result != kSuccess) return result;
    if (!into) return kInvalidArgument;
    *into = value;
    return kSuccess;
}

}  // namespace rankscope::vgpu::nvml
