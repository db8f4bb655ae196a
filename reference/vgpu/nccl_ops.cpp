// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl_ops.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "reference/vgpu/activity.h"
#include "reference/vgpu/data_plane.h"
#include "reference/vgpu/device_ops.h"
#include "reference/vgpu/profiler_plugin.h"

namespace rankscope::vgpu {
namespace {

// Host time of enqueueing one call, and of launching one kernel.
constexpr int64_t kEnqueueNs = 1500, kLaunchNs = 3500;

thread_local int t_depth = 0;
thread_local std::vector<NcclCall> t_calls;
thread_local std::vector<CommRequest> t_requests;

const char* typeName(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8: return "u8";
        case ncclInt32:
        case ncclUint32: return "u32";
        case ncclInt64:
        case ncclUint64: return "u64";
        case ncclFloat16: return "f16";
        case ncclFloat32: return "f32";
        case ncclFloat64: return "f64";
        case ncclBfloat16: return "bf16";
        case ncclFloat8e4m3: return "f8e4m3";
        case ncclFloat8e5m2: return "f8e5m2";
        default: return "u8";
    }
}

/// Kernel names live as long as the process: activity records point at them. Like NCCL's they do not tell what ran: one kernel per function
/// and type carries all operators, algorithms and protocols, and is called after the sum, the ring (or tree) and LL (src/device/generate.py).
const char* kernelName(const NcclCall& call, const CollectiveCost& cost) {
    std::string name = "ncclDevKernel_";
    name += call.function;
    switch (call.data.kind) {
        case TransferKind::allReduce:
        case TransferKind::reduce:
        case TransferKind::reduceScatter: name += std::string("_Sum_") + typeName(call.type); break;
        default: break;
    }
    name += cost.algorithm == Algorithm::tree ? "_TREE_LL" : "_RING_LL";
    name += "(ncclDevKernelArgsStorage<4096ul>)";
    static auto* names = new std::set<std::string>;    // guarded by LocalProcess::mutex()
    return names->insert(name).first->c_str();
}

constexpr const char* kSendRecvName = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

/// Everything all members must agree on, or NCCL would hang.
uint64_t fingerprint(const NcclCall& call) {
    return mixHash(mixHash(static_cast<uint64_t>(call.data.kind) << 32 | static_cast<uint64_t>(call.type) << 16 | call.data.root) ^
                   static_cast<uint64_t>(call.bytes)) ^
           static_cast<uint64_t>(call.op);
}

LocalStream* streamOf(LocalProcess& process, ThreadClock& thread, const NcclCall& call) {
    ThreadClock onDevice = thread;
    onDevice.device = call.comm->device;
    std::lock_guard guard(process.mutex());
    return resolveStream(process, onDevice, call.stream, false);
}

void rememberPending(ncclComm& comm, StreamPoint point) {
    for (StreamPoint& known : comm.pending) {
        if (known.stream != point.stream) continue;
        known.seq = point.seq;
        return;
    }
    comm.pending.push_back(point);
}

OpReport kernelReport(ApiCall& driverCall, const LocalStream& stream, const char* name, int channels) {
    OpReport report = reportFor(stream, driverCall.correlation(), OpReport::Kind::kernel, activityWanted(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    report.name = name;
    report.grid[0] = channels;
    report.grid[1] = report.grid[2] = report.block[1] = report.block[2] = 1;
    report.block[0] = 512;
    report.registers = 96;
    report.dynamicShared = 82240;
    return report;
}

void enqueueExchange(Arena& arena, StreamPoint point, const ncclComm& comm, const ExchangeSpec& data) {
    auto task = std::make_shared<ExchangeTask>(arena, data);
    DataPlane::instance().enqueue(point, [task, aborted = comm.aborted] { return *aborted || task->attempt(); });
}

double transferNoise(LocalProcess& process, const ncclComm& comm, uint64_t key) {
    const Cluster& cluster = process.cluster();
    if (cluster.noise == 0) return 1;
    return std::max(0.2, 1 + cluster.noise * normalNoise(cluster.seed, 0x4e43434c, comm.hash, key));
}

PluginEvent pluginEvent(const NcclCall& call, const CollectiveCost& cost) {
    PluginEvent event;
    event.sequence = call.comm->functionCounts[call.function]++;
    event.function = call.function;
    event.send = call.data.send;
    event.recv = call.data.recv;
    event.count = call.count;
    event.datatype = datatypeText(call.type);
    if (call.data.kind == TransferKind::allGather || call.data.kind == TransferKind::broadcast) {    // NCCL counts these in bytes
        event.count = call.data.chunkBytes;
        event.datatype = "ncclInt8";
    }
    event.root = static_cast<int>(call.data.root);
    event.channels = cost.channels;
    event.algorithm = nameOf(cost.algorithm);
    event.protocol = nameOf(cost.protocol);
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
        events.push_back(event);
    }
    return events;
}

ncclResult_t launchCollective(LocalProcess& process, NcclCall& call) {
    ncclComm& comm = *call.comm;
    ThreadClock& thread = process.clock();
    thread.ns += kEnqueueNs;
    LocalStream* stream = streamOf(process, thread, call);
    if (!stream) return ncclInvalidArgument;
    std::optional<CollectiveCost> cost;
    if (ncclResult_t result = comm.tuner.choose(process.cluster(), comm.shape, comm.rules, call.data.kind, call.bytes, cost); result != ncclSuccess)
        return result;
    if (!cost) return ncclInvalidUsage;
    process.throttle(*stream);
    reportGroup(comm, {pluginEvent(call, *cost)});
    ApiCall driverCall(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx", kLaunchNs);
    std::lock_guard guard(process.mutex());
    orderBehindDefaults(process, *stream);
    call.data.comm = comm.shared;
    call.data.rank = static_cast<uint32_t>(comm.rank);
    call.data.size = static_cast<uint32_t>(comm.size);
    call.data.key = comm.collectives++;
    double noise = transferNoise(process, comm, call.data.key);
    OpSpec spec;
    if (comm.size == 1) {    // NCCL copies, if anything
        spec.kind = OpKind::kernel;
        spec.workNs = 2000 + static_cast<int64_t>(2 * call.bytes / process.cluster().hbmGbps);
    } else {
        spec.kind = OpKind::transfer;
        PartSpec part{};
        part.comm = comm.shared;
        part.member = call.data.rank;
        part.kind = call.data.kind;
        part.key = call.data.key;
        part.fingerprint = fingerprint(call);
        part.latencyNs = cost->latencyNs;
        part.busBytes = cost->busBytes * noise;
        part.efficiency = cost->efficiency;
        spec.parts.push_back(part);
    }
    StreamPoint point = process.submit(*stream, std::move(spec), kernelReport(driverCall, *stream, kernelName(call, *cost), cost->channels));
    rememberPending(comm, point);
    enqueueExchange(process.arena(), point, comm, call.data);
    return ncclSuccess;
}

/// All sends and receives of a group on one communicator and stream: one kernel, done when all of them are.
ncclResult_t launchMessages(LocalProcess& process, std::vector<NcclCall>& calls) {
    ncclComm& comm = *calls.front().comm;
    ThreadClock& thread = process.clock();
    thread.ns += kEnqueueNs * static_cast<int64_t>(calls.size());
    LocalStream* stream = streamOf(process, thread, calls.front());
    if (!stream) return ncclInvalidArgument;
    process.throttle(*stream);
    reportGroup(comm, pluginEvents(calls));
    ApiCall driverCall(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx", kLaunchNs);
    std::lock_guard guard(process.mutex());
    orderBehindDefaults(process, *stream);
    const Arena& arena = process.arena();
    const Comm& shared = arena.comms[comm.shared];
    auto hostOf = [&](int rank) { return arena.devices[arena.members[shared.firstMember + static_cast<uint32_t>(rank)].device].hostKey; };
    OpSpec spec;
    spec.kind = OpKind::transfer;
    for (NcclCall& call : calls) {
        call.data.comm = comm.shared;
        call.data.rank = static_cast<uint32_t>(comm.rank);
        call.data.size = static_cast<uint32_t>(comm.size);
        call.data.key = (call.data.isSend ? comm.sends : comm.receives)[call.data.peer]++;
        PartSpec part{};
        part.comm = comm.shared;
        part.member = call.data.rank;
        part.kind = TransferKind::p2p;
        part.isSend = call.data.isSend;
        part.peer = call.data.peer;
        part.key = call.data.key;
        part.fingerprint = mixHash(static_cast<uint64_t>(call.bytes));
        bool sameNode = hostOf(comm.rank) == hostOf(static_cast<int>(call.data.peer));
        part.latencyNs = static_cast<int64_t>(1000 * (sameNode ? process.cluster().intra : process.cluster().inter).alphaUs);
        part.busBytes = call.bytes;
        part.efficiency = 1;
        if (part.peer == part.member) part.latencyNs = 1000;
        spec.parts.push_back(part);
    }
    int channels = std::min<int>(16, static_cast<int>(calls.size()) * 2);
    StreamPoint point = process.submit(*stream, std::move(spec), kernelReport(driverCall, *stream, kSendRecvName, channels));
    rememberPending(comm, point);
    // Receives must not hold up this rank's own sends, so all sends are posted first.
    for (const NcclCall& call : calls)
        if (call.data.isSend) enqueueExchange(process.arena(), point, comm, call.data);
    for (const NcclCall& call : calls)
        if (!call.data.isSend) enqueueExchange(process.arena(), point, comm, call.data);
    return ncclSuccess;
}

ncclResult_t launchAll(std::vector<NcclCall> calls) {
    LocalProcess& process = LocalProcess::instance();
    ncclResult_t result = ncclSuccess;
    std::vector<bool> taken(calls.size());
    for (size_t i = 0; i < calls.size() && result == ncclSuccess; i++) {
        if (taken[i]) continue;
        if (calls[i].data.kind != TransferKind::p2p) {
            result = launchCollective(process, calls[i]);
            continue;
        }
        std::vector<NcclCall> together;
        for (size_t k = i; k < calls.size(); k++) {
            bool same = calls[k].data.kind == TransferKind::p2p && calls[k].comm == calls[i].comm && calls[k].stream == calls[i].stream;
            if (!same || taken[k]) continue;
            taken[k] = true;
            together.push_back(calls[k]);
        }
        result = launchMessages(process, together);
    }
    process.publish(process.clock());
    return result;
}

}  // namespace

int groupDepth() { return t_depth; }

ncclResult_t startGroup() {
    t_depth++;
    return ncclSuccess;
}

ncclResult_t endGroup() {
    if (t_depth == 0) return ncclInvalidUsage;
    if (--t_depth > 0) return ncclSuccess;
    std::vector<CommRequest> requests = std::exchange(t_requests, {});
    std::vector<NcclCall> calls = std::exchange(t_calls, {});
    LocalProcess& process = LocalProcess::instance();
    std::vector<uint32_t> joined;
    for (const CommRequest& request : requests) {
        joined.push_back(joinComm(process, request, process.clock().ns));
        if (joined.back() == kNone) return ncclInvalidUsage;
    }
    for (size_t i = 0; i < requests.size(); i++)
        if (ncclResult_t result = completeComm(process, requests[i], joined[i]); result != ncclSuccess) return result;
    return launchAll(std::move(calls));
}

ncclResult_t requestComm(CommRequest request) {
    if (t_depth > 0) {
        t_requests.push_back(std::move(request));
        return ncclSuccess;
    }
    LocalProcess& process = LocalProcess::instance();
    uint32_t shared = joinComm(process, request, process.clock().ns);
    return shared == kNone ? ncclInvalidUsage : completeComm(process, request, shared);
}

ncclResult_t issue(NcclCall call) {
    if (!call.comm) return ncclInvalidArgument;
    if (*call.comm->aborted) return ncclInvalidUsage;
    if (t_depth > 0) {
        t_calls.push_back(std::move(call));
        return ncclSuccess;
    }
    std::vector<NcclCall> calls;
    calls.push_back(std::move(call));
    return launchAll(std::move(calls));
}

}  // namespace rankscope::vgpu
