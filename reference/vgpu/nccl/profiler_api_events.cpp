// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/profiler_api_events.h"

#include <utility>

#include "reference/vgpu/plugins/profiler_abi.h"
#include "reference/vgpu/plugins/profiler_host.h"

namespace rankscope::vgpu {
namespace {

using namespace profiler_abi;

// An event is sent when it or anything below it is asked for (src/plugin/profiler.cc).
constexpr int kBelowColl = kColl | kProxyOp | kProxyStep | kKernelCh | kNetPlugin;
constexpr int kBelowP2p = kP2p | kProxyOp | kProxyStep | kKernelCh | kNetPlugin;
constexpr int kBelowGroup = kGroup | kGroupApi | kCollApi | kP2pApi | kKernelLaunch | kBelowColl | kBelowP2p;

/// Guarded by LocalProcess::mutex().
std::vector<std::shared_ptr<ChannelEvents>>& kept() {
    static auto* events = new std::vector<std::shared_ptr<ChannelEvents>>;
    return *events;
}

template <typename Interface, typename Descriptor>
void sendChannels(const Interface& interface, const ChannelEvents& events) {
    for (void* parent : events.parents) {
        for (int channel = 0; channel < events.channels; channel++) {
            auto descriptor = describe<Descriptor>(kKernelCh, parent, events.rank);
            descriptor.kernelCh = {static_cast<uint8_t>(channel), static_cast<uint64_t>(events.startNs)};
            void* handle = start(interface, events.context, descriptor);
            if (!handle) continue;
            StateArguments arguments{};
            arguments.pTimer = static_cast<uint64_t>(events.endNs);
            interface.recordEventState(handle, kKernelChStop, &arguments);
            interface.stopEvent(handle);
        }
    }
}

}  // namespace

ProfilerCalls& ProfilerCalls::ofThread() {
    static thread_local ProfilerCalls calls;
    return calls;
}

void* ProfilerCalls::call(ncclComm& comm, const PluginEvent& event, void* stream, bool captured, int depth) {
    const PluginV5* plugin = profilerPlugin().v5;
    if (!plugin || !comm.profiled || comm.size == 1) return nullptr;
    const int mask = profilerMask();
    if (!m_group && mask & kBelowGroup) {
        auto group = describe<DescriptorV5>(kGroupApi, nullptr, comm.rank);
        group.groupApi = {captured, depth};
        m_group = start(*plugin, comm.profilerContext, group);
        if (m_group) plugin->recordEventState(m_group, kGroupStartApiStop, nullptr);
    }
    if (!(mask & (event.isMessage ? kP2pApi | kBelowP2p : kCollApi | kBelowColl))) return nullptr;
    auto descriptor = describe<DescriptorV5>(event.isMessage ? kP2pApi : kCollApi, m_group, comm.rank);
    if (event.isMessage)
        descriptor.p2pApi = {event.function, event.count, event.datatype, stream, captured, 0};
    else
        descriptor.collApi = {event.function, event.count, event.datatype, event.root, stream, captured, event.userTag};
    void* handle = start(*plugin, comm.profilerContext, descriptor);
    if (handle) plugin->stopEvent(handle);
    return handle;
}

void ProfilerCalls::launching() {
    if (m_group) profilerPlugin().v5->recordEventState(m_group, kGroupEndApiStart, nullptr);
}

void* ProfilerCalls::beginKernelLaunch(ncclComm& comm, void* stream) {
    const PluginV5* plugin = profilerPlugin().v5;
    if (!plugin || !comm.profiled || comm.size == 1 || !(profilerMask() & kKernelLaunch)) return nullptr;
    auto descriptor = describe<DescriptorV5>(kKernelLaunch, m_group, comm.rank);
    descriptor.kernelLaunch = {stream};
    return start(*plugin, comm.profilerContext, descriptor);
}

void ProfilerCalls::endKernelLaunch(void* launch) {
    if (launch) profilerPlugin().v5->stopEvent(launch);
}

void ProfilerCalls::done() {
    if (void* group = std::exchange(m_group, nullptr)) profilerPlugin().v5->stopEvent(group);
}

std::shared_ptr<ChannelEvents> channelEvents(const ncclComm& comm, std::vector<void*> parents, int channels) {
    const bool capable = profilerPlugin().v5 || profilerPlugin().v4;
    std::erase(parents, nullptr);
    if (!capable || !comm.profiled || comm.size == 1 || parents.empty() || !(profilerMask() & kKernelCh))
        return nullptr;
    auto events = std::make_shared<ChannelEvents>();
    events->context = comm.profilerContext;
    events->rank = comm.rank;
    events->parents = std::move(parents);
    events->channels = channels;
    return events;
}

void ChannelEvents::keep(const Op&, const Part*, int64_t startedNs, int64_t endedNs) {
    startNs = startedNs;
    endNs = endedNs;
    kept().push_back(std::static_pointer_cast<ChannelEvents>(shared_from_this()));
}

void sendChannelEvents(LocalProcess& process) {
    std::vector<std::shared_ptr<ChannelEvents>> ready;
    {
        std::lock_guard guard(process.mutex());
        ready.swap(kept());
    }
    for (const auto& events : ready) {
        if (profilerPlugin().v5)
            sendChannels<PluginV5, DescriptorV5>(*profilerPlugin().v5, *events);
        else
            sendChannels<PluginV4, DescriptorV4>(*profilerPlugin().v4, *events);
    }
}

}  // namespace rankscope::vgpu
