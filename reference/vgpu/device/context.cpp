// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/context.h"

namespace rankscope::vgpu {
namespace {

constexpr int kMostDevices = 64;
char g_contexts[kMostDevices];  // their addresses are the handles

}  // namespace

CUcontext contextOf(int device) {
    return reinterpret_cast<CUcontext>(&g_contexts[device]);
}

int deviceOf(CUcontext context) {
    const char* address = reinterpret_cast<const char*>(context);
    return address >= g_contexts && address < g_contexts + kMostDevices ? static_cast<int>(address - g_contexts) : -1;
}

}  // namespace rankscope::vgpu
