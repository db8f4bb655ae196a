// SPDX-License-Identifier: Apache-2.0
// Finds what links can do: in a table of data sheets by the name of the device, and in what the hosts of the job said
// of their links while it ran (trace.db's machine_link: NVML and sysfs).
#pragma once

#include "analyzer/costs/link_peaks.h"

namespace rankscope::costs {

/// PCIe carries a packet's headers and acknowledgements beside its data: NCCL counts 12 GB/s for 16 lanes of generation
/// 3, 24 for 4, 48 for 5 (src/graph/topo.cc, kvDictPciGen), where the line's own coding leaves 15.75, 31.5 and 63.
constexpr double kPcieShare = 12 / 15.75;

/// Holds a device's own links by its data sheet. NICs are no property of a device: what is between nodes stays unknown.
struct DeviceLinks {
    std::optional<LinkClass> intra;    // the slowest of the job's devices; none unless all are known
    std::vector<std::string> unknown;  // names without a row, each once
};

DeviceLinks deviceLinks(const facts::TraceFacts& facts);

/// Returns the link of one device by its name as the driver gives it ("NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB").
/// None where the table has no row for it, and for a part of a device (MIG).
std::optional<LinkClass> deviceLinkOf(const std::string& name);

/// Returns how many boards of that name NVLink bridges join at most; 0 where NVLink joins all of a host, where there is
/// none, and for names without a row.
int bridgedBoards(const std::string& name);

/// Returns a rank's port: the sum of its device's NVLinks, else its PCIe. Where ranks differ it is the slowest, and the
/// source says so. None where no rank's device has either.
std::optional<LinkClass> machineIntra(const facts::TraceFacts& facts);

/// Returns a rank's share of its host's ports: the InfiniBand ports that are up, else the network interfaces, over the
/// ranks there, and at most one port. Where hosts differ it is the slowest, and the source says so.
std::optional<LinkClass> machineInter(const facts::TraceFacts& facts);

}  // namespace rankscope::costs
