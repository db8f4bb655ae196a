// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/profiler_plugin.h"

#include <dlfcn.h>

#include "reference/vgpu/nccl/profiler_api_events.h"
#include "reference/vgpu/nccl/proxy_transfers.h"
#include "reference/vgpu/plugins/plugin_library.h"
#include "reference/vgpu/plugins/profiler_abi.h"
#include "reference/vgpu/plugins/profiler_host.h"

namespace rankscope::vgpu {
namespace {

using namespace profiler_abi;

/// One mask for all communicators: a plugin keeps the pointer and may change it at any time.
int g_mask = 0;

CollV5 collective(const PluginEvent& event, void* group) {
    return {event.sequence,
            event.function,
            event.send,
            event.recv,
            event.count,
            event.root,
            event.datatype,
            static_cast<uint8_t>(event.channels),
            16,
            event.algorithm,
            event.protocol,
            group,
            nullptr,
            false,
            event.userTag};
}

void fill(DescriptorV5& descriptor, const PluginEvent& event, const ncclComm&, void* group) {
    if (!event.isMessage)
        descriptor.coll = collective(event, group);
    else
        descriptor.p2p = {event.function, event.send ? const_cast<void*>(event.send) : event.recv,
                          event.datatype, event.count,
                          event.peer,     static_cast<uint8_t>(event.channels),
                          group,          event.userTag};
}

void fill(DescriptorV4& descriptor, const PluginEvent& event, const ncclComm&, void*) {
    if (!event.isMessage)
        descriptor.coll = collective(event, nullptr);
    else
        descriptor.p2p = {event.function, event.send ? const_cast<void*>(event.send) : event.recv,
                          event.datatype, event.count,
                          event.peer,     static_cast<uint8_t>(event.channels),
                          nullptr,        0};
}

void fill(DescriptorV3& descriptor, const PluginEvent& event, const ncclComm& comm, void*) {
    if (!event.isMessage)
        descriptor.coll = {comm.name.c_str(), comm.hash, collective(event, nullptr)};
    else
        descriptor.p2p = {
            comm.name.c_str(), comm.hash,   event.function, event.send ? const_cast<void*>(event.send) : event.recv,
            event.datatype,    event.count, event.peer};
}

/// Version 5 hangs collectives below the program's calls, older ones below the group.
void* parentOf(const DescriptorV5&, const PluginEvent& event, void*) {
    return event.apiCall;
}
template <typename Descriptor>
void* parentOf(const Descriptor&, const PluginEvent&, void* group) {
    return group;
}

template <typename Descriptor, typename Interface>
std::vector<void*> report(const Interface& interface, ncclComm& comm, const std::vector<PluginEvent>& events) {
    const int mask = profilerMask();
    std::vector<void*> handles;
    void* group = nullptr;
    if (mask & kGroup) {
        auto descriptor = describe<Descriptor>(kGroup, nullptr, comm.rank);
        group = start(interface, comm.profilerContext, descriptor);
    }
    for (const PluginEvent& event : events) {
        int type = event.isMessage ? kP2p : kColl;
        if (!(mask & (type | kProxyOp | kProxyStep | kKernelCh))) {
            handles.push_back(nullptr);
            continue;
        }
        auto descriptor = describe<Descriptor>(type, nullptr, comm.rank);
        descriptor.parent = parentOf(descriptor, event, group);
        fill(descriptor, event, comm, group);
        void* handle = start(interface, comm.profilerContext, descriptor);
        if (handle) interface.stopEvent(handle);
        handles.push_back(handle);
    }
    if (group) interface.stopEvent(group);
    return handles;
}

}  // namespace

const ProfilerPlugin& profilerPlugin() {
    static const ProfilerPlugin loaded = [] {
        ProfilerPlugin found;
        void* library = openPlugin("NCCL_PROFILER_PLUGIN", "nccl-profiler");
        if (!library) return found;
        for (const char* name : {"ncclProfiler_v7", "ncclProfiler_v6", "ncclProfiler_v5"})
            if (!found.v5) found.v5 = static_cast<const PluginV5*>(dlsym(library, name));
        if (found.v5) return found;
        if (void* older = dlsym(library, "ncclProfiler_v4"))
            found.v4 = static_cast<const PluginV4*>(older);
        else if (void* oldest = dlsym(library, "ncclProfiler_v3"))
            found.v3 = static_cast<const PluginV3*>(oldest);
        return found;
    }();
    return loaded;
}

int profilerMask() {
    return __atomic_load_n(&g_mask, __ATOMIC_RELAXED);
}

void openProfiler(ncclComm& comm) {
    const ProfilerPlugin& loaded = profilerPlugin();
    if (!loaded.present()) return;
    LocalProcess::instance().sendObservationsBy([](LocalProcess& process) {
        sendChannelEvents(process);
        sendTransfers(process);
    });
    const char* name = comm.name.c_str();
    int nodes = static_cast<int>(comm.shape.nodes);
    ncclResult_t result = ncclSuccess;
    if (loaded.v5)
        result =
            loaded.v5->init(&comm.profilerContext, comm.hash, &g_mask, name, nodes, comm.size, comm.rank, ignoreLog);
    else if (loaded.v4)
        result =
            loaded.v4->init(&comm.profilerContext, &g_mask, name, comm.hash, nodes, comm.size, comm.rank, ignoreLog);
    else
        result = loaded.v3->init(&comm.profilerContext, &g_mask);
    comm.profiled = result == ncclSuccess;
}

void closeProfiler(ncclComm& comm) {
    if (!comm.profiled) return;
    const ProfilerPlugin& loaded = profilerPlugin();
    if (loaded.v5)
        loaded.v5->finalize(comm.profilerContext);
    else if (loaded.v4)
        loaded.v4->finalize(comm.profilerContext);
    else
        loaded.v3->finalize(comm.profilerContext);
    comm.profiled = false;
}

std::vector<void*> reportGroup(ncclComm& comm, const std::vector<PluginEvent>& events) {
    if (!comm.profiled || comm.size == 1) return {};  // NCCL sends no events for a lone rank
    const ProfilerPlugin& loaded = profilerPlugin();
    if (loaded.v5) return report<DescriptorV5>(*loaded.v5, comm, events);
    if (loaded.v4) return report<DescriptorV4>(*loaded.v4, comm, events);
    return report<DescriptorV3>(*loaded.v3, comm, events);
}

const char* datatypeText(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
            return "ncclInt8";
        case ncclUint8:
            return "ncclUint8";
        case ncclInt32:
            return "ncclInt32";
        case ncclUint32:
            return "ncclUint32";
        case ncclInt64:
            return "ncclInt64";
        case ncclUint64:
            return "ncclUint64";
        case ncclFloat16:
            return "ncclFloat16";
        case ncclFloat32:
            return "ncclFloat32";
        case ncclFloat64:
            return "ncclFloat64";
        case ncclBfloat16:
            return "ncclBfloat16";
        case ncclFloat8e4m3:
            return "ncclFloat8e4m3";
        case ncclFloat8e5m2:
            return "ncclFloat8e5m2";
        default:
            return "Unknown";
    }
}

}  // namespace rankscope::vgpu
