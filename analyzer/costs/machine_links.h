// SPDX-License-Identifier: Apache-2.0
// Peaks from what the hosts of the job said of their links while it ran (trace.db's machine_link: NVML and sysfs).
#pragma once

#include "analyzer/costs/link_peaks.h"

namespace rankscope::costs {

/// A rank's port: the sum of its device's NVLinks, else its PCIe. Ranks that differ: the slowest, and the source says
/// so. None where no rank's device has either.
std::optional<LinkClass> machineIntra(const facts::TraceFacts& facts);

/// A rank's share of its host's ports: the InfiniBand ports that are up, else the network interfaces, over the ranks
/// there, and at most one port. Hosts that differ: the slowest, and the source says so.
std::optional<LinkClass> machineInter(const facts::TraceFacts& facts);

}  // namespace rankscope::costs
