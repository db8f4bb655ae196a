// SPDX-License-Identifier: Apache-2.0
// How NCCL's calls show: the kernels that carry them, and the events a profiler plugin is sent.
#pragma once

#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/nccl/nccl_ops.h"
#include "reference/vgpu/nccl/profiler_plugin.h"

namespace rankscope::vgpu {

inline constexpr const char* kSendRecvKernel = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE";
inline constexpr int kSendRecvThreads = 640;

/// Kernel names live as long as the process: activity records point at them. Like NCCL's they do not tell what ran: one
/// kernel per function and type carries all operators, algorithms and protocols, and is called after the sum, the ring
/// (or tree) and LL (src/device/generate.py). Takes LocalProcess::mutex().
const char* kernelName(LocalProcess& process, const NcclCall& call, const CollectiveCost& cost);

/// Threads of a block. NCCL 2.28 (src/graph/tuning.cc): 512, and with the simple protocol a warp to synchronise rings
/// and four for trees; 640 for LL128. (Rings over links of at most 12 GB/s have half of the 512; those are not
/// modelled.)
int kernelThreads(Algorithm algorithm, Protocol protocol);

/// The launch of a kernel of that name, one block per channel; what it does is still to be said.
DeviceWork kernelWork(const char* name, int channels, int threads);

/// `captured`: NCCL leaves collectives of graphs out of its numbering.
PluginEvent pluginEvent(const NcclCall& call, const CollectiveCost& cost, bool captured);
std::vector<PluginEvent> pluginEvents(const std::vector<NcclCall>& messages);

}  // namespace rankscope::vgpu
