// SPDX-License-Identifier: Apache-2.0
// What a device says of its build. Programs choose kernels by it; what those take, the cluster's rates tell.
#pragma once

#include "reference/vgpu/engine/cluster.h"

namespace rankscope::vgpu {

struct DeviceModel {
    int major, minor;
    int multiprocessors;
    int sharedPerBlockOptin, sharedPerMultiprocessor;  ///< bytes
    int l2Bytes;
};

DeviceModel deviceModel(const Cluster& cluster);

}  // namespace rankscope::vgpu
