// SPDX-License-Identifier: Apache-2.0
// The loaded profiler plugin, for those who send it events.
#pragma once

#include <cstring>

#include "reference/vgpu/plugins/profiler_abi.h"

namespace rankscope::vgpu {

struct ProfilerPlugin {
    const profiler_abi::PluginV5* v5 = nullptr;  ///< versions 5 to 7
    const profiler_abi::PluginV4* v4 = nullptr;
    const profiler_abi::PluginV3* v3 = nullptr;
    bool present() const { return v5 || v4 || v3; }
};

const ProfilerPlugin& profilerPlugin();
/// The events it asks for at this moment.
int profilerMask();

template <typename Descriptor>
Descriptor describe(int type, void* parent, int rank) {
    Descriptor descriptor;
    std::memset(&descriptor, 0, sizeof descriptor);
    descriptor.type = static_cast<decltype(descriptor.type)>(type);
    descriptor.parent = parent;
    descriptor.rank = rank;
    return descriptor;
}

/// The event's handle, null if the plugin declines.
template <typename Interface, typename Descriptor>
void* start(const Interface& interface, void* context, Descriptor& descriptor) {
    void* handle = nullptr;
    return interface.startEvent(context, &handle, &descriptor) == ncclSuccess ? handle : nullptr;
}

}  // namespace rankscope::vgpu
