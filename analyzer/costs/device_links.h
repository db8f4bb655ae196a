// SPDX-License-Identifier: Apache-2.0
// What data sheets say of a device's own links, found by its name. Network cards are no property of a device: what is
// between nodes stays unknown.
#pragma once

#include "analyzer/costs/link_peaks.h"

namespace rankscope::costs {

/// PCIe carries a packet's headers and acknowledgements beside its data: NCCL counts 12 GB/s for 16 lanes of generation
/// 3, 24 for 4, 48 for 5 (src/graph/topo.cc, kvDictPciGen), where the line's own coding leaves 15.75, 31.5 and 63.
constexpr double kPcieShare = 12 / 15.75;

struct DeviceLinks {
    std::optional<LinkClass> intra;    // the slowest of the job's devices; none unless all are known
    std::vector<std::string> unknown;  // names without a row, each once
};

DeviceLinks deviceLinks(const facts::TraceFacts& facts);

/// Of one device by its name as the driver gives it ("NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB"). None where
/// nobody here knows it, and for a part of a device (MIG).
std::optional<LinkClass> deviceLinkOf(const std::string& name);

/// How many boards of that name NVLink bridges join at most; 0 where NVLink joins all of a host, where there is none,
/// and for names that nobody here knows.
int bridgedBoards(const std::string& name);

}  // namespace rankscope::costs
