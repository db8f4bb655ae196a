// SPDX-License-Identifier: Apache-2.0
// What the cluster's machines say of their links: the healthy rates. A cable or adapter that carries less than it
// should has still negotiated its own speed, so planted faults do not show here.
#pragma once

#include <cstdint>
#include <string>

#include "reference/vgpu/engine/cluster.h"

namespace rankscope::vgpu {

struct Nvlinks {
    uint32_t count = 0;          ///< 0: devices are joined by PCIe alone
    uint32_t megabytesPerS = 0;  ///< each, one direction
};

/// RANKSCOPE_VGPU_LINKS=hidden: NVML does not begin, and no folder like /sys is written.
bool linksAreHidden();

Nvlinks nvlinksOf(const Cluster& cluster);
/// Of what goes over it: all between devices where there is no NVLink, else what they exchange with their host.
PcieLink pcieLinkOf(const Cluster& cluster);

/// Writes a folder that looks like /sys with a node's InfiniBand ports, one per rank. Nothing when `root` is there
/// already; processes may race. Throws std::filesystem::filesystem_error.
void writeSysfs(const Cluster& cluster, const std::string& root);

/// The cluster of RANKSCOPE_SCENARIO; the default one when it is not set or cannot be read (the process says so when it
/// joins the job).
const Cluster& describedCluster();

}  // namespace rankscope::vgpu
