// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {

/// A call as NCCL's profiler plugin names it: the hash of its communicator, and the counter of the thread it was made
/// in, which another thread of the process may repeat.
using PluginCallName = std::pair<uint64_t, uint32_t>;

struct ChannelCall {
    size_t call = 0;  ///< into the calls
    int64_t startNs = 0;
};

/// Kernels of NCCL as its profiler plugin saw them on the device, channel by channel, for recordings without device
/// activity (`rankscope run --light`): from the first begin of a channel to the last end. Calls of one group on one
/// stream run in one kernel. Sets kernelId and streamId of the calls; handles[i] is the stream that call i was made
/// for. The stamps are those of the device's global timer. Where it counts from another moment than the host's clock,
/// or shows that kernels begin before they are called, all of them are moved so that the earliest begins with its call.
void addKernelsOfChannels(const RawCapture& raw, const std::multimap<PluginCallName, ChannelCall>& names,
                          const std::vector<std::optional<uint64_t>>& handles, std::vector<store::NcclCall*> calls,
                          RankRecording& recording);

}  // namespace rankscope::collector
