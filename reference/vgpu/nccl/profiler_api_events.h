// SPDX-License-Identifier: Apache-2.0
// What NCCL 2.28 tells a profiler plugin of version 5 beside groups and collectives: the program's calls, kernel
// launches, and when the kernel of each channel ran.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/vgpu/nccl/profiler_plugin.h"

namespace rankscope::vgpu {

/// The calls of a thread from its first in a group to the group's end; a call outside a group is a group of its own.
class ProfilerCalls {
  public:
    static ProfilerCalls& ofThread();

    /// A call is made. Returns its event, which what is enqueued for it names as its parent; null without a plugin that
    /// asks for it.
    void* call(ncclComm& comm, const PluginEvent& event, void* stream, bool captured, int depth);
    /// The group ends: its calls are launched from here on.
    void launching();
    void* beginKernelLaunch(ncclComm& comm, void* stream);
    static void endKernelLaunch(void* launch);
    void done();

  private:
    void* m_group = nullptr;
};

/// The channels of one kernel, as their events will be sent once it has run.
struct ChannelEvents final : OperationObserver {
    void* context = nullptr;
    int rank = 0;
    std::vector<void*> parents;  ///< the collectives or messages it carries
    int channels = 1;
    int64_t startNs = 0, endNs = 0;  ///< as the device's clock shows them

    void keep(const Op& op, const Part* parts, int64_t startedNs, int64_t endedNs) override;
};

/// The channel events of a kernel that carries the given events; null if nobody wants them.
std::shared_ptr<ChannelEvents> channelEvents(const ncclComm& comm, std::vector<void*> parents, int channels);
/// Sends what was kept, as NCCL's proxy thread does when it finds that a kernel has ended. LocalProcess::mutex() is not
/// held.
void sendChannelEvents(LocalProcess& process);

}  // namespace rankscope::vgpu
