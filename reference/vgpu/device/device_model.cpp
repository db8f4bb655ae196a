// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/device_model.h"

namespace rankscope::vgpu {

DeviceModel deviceModel(const Cluster& cluster) {
    const int major = cluster.computeCapability / 10, minor = cluster.computeCapability % 10;
    // Shared memory by the table of compute capabilities in the CUDA C++ Programming Guide 13.0, the rest by the
    // architectures' white papers: A100 (108 multiprocessors, 40 MB of L2) and H100 SXM5 (132, 50 MB).
    if (major < 9) return {major, minor, 108, 163 << 10, 164 << 10, 40 << 20};
    return {major, minor, 132, 227 << 10, 228 << 10, 50 << 20};
}

}  // namespace rankscope::vgpu
