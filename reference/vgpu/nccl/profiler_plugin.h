// SPDX-License-Identifier: Apache-2.0
// The host side of NCCL's profiler plugins: loads the one NCCL_PROFILER_PLUGIN names and tells it what is enqueued.
#pragma once

#include "reference/vgpu/nccl/nccl_comm.h"

namespace rankscope::vgpu {

/// What one collective or message is reported as. Texts are static.
struct PluginEvent {
    bool isMessage = false;
    uint64_t sequence = 0;
    const char* function = "";
    const void* send = nullptr;
    void* recv = nullptr;
    size_t count = 0;
    int root = 0, peer = 0;
    const char* datatype = "";
    int channels = 1;
    const char* algorithm = "";
    const char* protocol = "";
    uint64_t userTag = 0;
    void* apiCall = nullptr;  ///< the event of the program's call
};

void openProfiler(ncclComm& comm);
void closeProfiler(ncclComm& comm);
/// One group of calls on a communicator, as NCCL reports it: group, its calls, end. Returns the event of each call,
/// null where nobody wants it, by which those of their channels and of their network transfers are tied to them. Called
/// without LocalProcess::mutex().
std::vector<void*> reportGroup(ncclComm& comm, const std::vector<PluginEvent>& events);

/// "ncclFloat32" and so on.
const char* datatypeText(ncclDataType_t type);

}  // namespace rankscope::vgpu
