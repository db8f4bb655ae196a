// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/nccl_kernels.h"

#include <set>
#include <string>

namespace rankscope::vgpu {
namespace {

const char* typeName(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
            return "u8";
        case ncclInt32:
        case ncclUint32:
            return "u32";
        case ncclInt64:
        case ncclUint64:
            return "u64";
        case ncclFloat16:
            return "f16";
        case ncclFloat32:
            return "f32";
        case ncclFloat64:
            return "f64";
        case ncclBfloat16:
            return "bf16";
        case ncclFloat8e4m3:
            return "f8e4m3";
        case ncclFloat8e5m2:
            return "f8e5m2";
        default:
            return "u8";
    }
}

/// As CUPTI tells NCCL 2.28's kernels: mangled, with their one argument of type ncclDevKernelArgsStorage<4096ul>.
std::string mangled(const std::string& name) {
    return "_Z" + std::to_string(name.size()) + name + "24ncclDevKernelArgsStorageILm4096EE";
}

}  // namespace

int kernelThreads(Algorithm algorithm, Protocol protocol) {
    if (protocol == Protocol::ll) return 512;
    if (protocol == Protocol::ll128 || algorithm == Algorithm::tree) return 640;
    return 544;
}

const char* kernelName(LocalProcess& process, const NcclCall& call, const CollectiveCost& cost) {
    std::string name = "ncclDevKernel_";
    name += call.function;
    switch (call.data.kind) {
        case TransferKind::allReduce:
        case TransferKind::reduce:
        case TransferKind::reduceScatter:
            name += std::string("_Sum_") + typeName(call.type);
            break;
        default:
            break;
    }
    name += cost.algorithm == Algorithm::tree ? "_TREE_LL" : "_RING_LL";
    name = mangled(name);
    std::lock_guard guard(process.mutex());
    static auto* names = new std::set<std::string>;
    return names->insert(name).first->c_str();
}

DeviceWork kernelWork(const char* name, int channels, int threads) {
    DeviceWork work;
    work.recordKind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    OpReport& report = work.report;
    report.kind = OpReport::Kind::kernel;
    report.name = name;
    report.grid[0] = channels;
    report.grid[1] = report.grid[2] = report.block[1] = report.block[2] = 1;
    report.block[0] = threads;
    report.registers = 96;
    report.dynamicShared = 82240;
    return work;
}

PluginEvent pluginEvent(const NcclCall& call, const CollectiveCost& cost, bool captured) {
    PluginEvent event;
    event.sequence = captured ? call.comm->functionCounts[call.function] : call.comm->functionCounts[call.function]++;
    event.function = call.function;
    event.send = call.data.send;
    event.recv = call.data.recv;
    event.count = call.count;
    event.datatype = datatypeText(call.type);
    if (call.data.kind == TransferKind::allGather ||
        call.data.kind == TransferKind::broadcast) {  // NCCL counts these in bytes
        event.count = call.data.chunkBytes;
        event.datatype = "ncclInt8";
    }
    event.root = static_cast<int>(call.data.root);
    event.channels = cost.channels;
    event.algorithm = nameOf(cost.algorithm);
    event.protocol = nameOf(cost.protocol);
    event.userTag = call.userTag;
    event.apiCall = captured ? nullptr : call.apiEvent;
    return event;
}

std::vector<PluginEvent> pluginEvents(const std::vector<NcclCall>& messages) {
    std::vector<PluginEvent> events;
    for (const NcclCall& call : messages) {
        PluginEvent event;
        event.isMessage = true;
        event.function = call.function;
        event.send = call.data.send;
        event.recv = call.data.recv;
        event.count = call.count;
        event.datatype = datatypeText(call.type);
        event.peer = static_cast<int>(call.data.peer);
        event.channels = 2;
        event.userTag = call.userTag;
        event.apiCall = call.apiEvent;
        events.push_back(event);
    }
    return events;
}

}  // namespace rankscope::vgpu
