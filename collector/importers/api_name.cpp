// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/api_name.h"

namespace rankscope::collector {

using store::ApiKind;

ApiKind apiKindFromName(std::string_view name) {
    for (const std::string_view prefix : {"cuda", "hip", "cu", "urEnqueue", "zeCommandListAppend", "mtia"}) {
        if (name.substr(0, prefix.size()) == prefix) {
            name.remove_prefix(prefix.size());
            break;
        }
    }
    const auto starts = [name](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
    const auto contains = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (starts("GraphLaunch")) return ApiKind::graphLaunch;
    if (starts("Launch") || starts("KernelLaunch") || contains("ModuleLaunch") || contains("ExtLaunch") ||
        contains("LaunchKernel"))
        return ApiKind::launch;
    if (starts("EventSynchronize") || starts("StreamSynchronize") || starts("DeviceSynchronize") ||
        starts("CtxSynchronize"))
        return ApiKind::synchronize;
    if (starts("EventRecord") || starts("StreamWaitEvent")) return ApiKind::event;
    // Intel's Unified Runtime and Level Zero.
    if (starts("urQueueFinish") || starts("urEventWait") || starts("zeCommandQueueSynchronize") ||
        starts("zeEventHostSynchronize"))
        return ApiKind::synchronize;
    if (starts("USMMemcpy") || starts("MemoryCopy")) return ApiKind::copy;
    if (starts("USMFill") || starts("MemoryFill")) return ApiKind::set;
    if (starts("urUSM") && contains("Alloc")) return ApiKind::allocate;
    if (starts("Memcpy")) return ApiKind::copy;
    if (starts("Memset")) return ApiKind::set;
    if (starts("Malloc") || starts("HostAlloc") || starts("MemAlloc") || starts("MemCreate") || starts("ExtMalloc"))
        return ApiKind::allocate;
    if (starts("Free") || starts("MemFree") || starts("MemRelease") || starts("HostFree")) return ApiKind::free;
    return ApiKind::other;
}

}  // namespace rankscope::collector
