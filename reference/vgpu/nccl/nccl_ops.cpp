// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/nccl_ops.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/graph_capture.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/engine/nccl_world.h"
#include "reference/vgpu/nccl/nccl_kernels.h"
#include "reference/vgpu/nccl/profiler_api_events.h"
#include "reference/vgpu/nccl/proxy_transfers.h"
#include "reference/vgpu/plugins/profiler_host.h"

namespace rankscope::vgpu {
namespace {

// Host time of enqueueing one call, and of launching one kernel.
constexpr int64_t kEnqueueNs = 1500, kLaunchNs = 3500;

thread_local int t_depth = 0;
thread_local std::vector<NcclCall> t_calls;
thread_local std::vector<CommRequest> t_requests;

/// How long both ends of a message must say that it is. NCCL compares no lengths: small messages go by protocol LL, in
/// lines of 8 bytes that the receiver waits for. With another number of lines, or in another protocol, it waits for
/// ever.
uint64_t agreedLength(int64_t bytes) {
    constexpr int64_t kLongestInLines = 16384;  // NCCL_P2P_LL_THRESHOLD
    constexpr int64_t kLine = 8;
    return static_cast<uint64_t>(bytes <= kLongestInLines ? (bytes + kLine - 1) / kLine * kLine : bytes);
}

/// Everything all members must agree on, or NCCL would hang.
uint64_t fingerprint(const NcclCall& call) {
    if (call.data.kind == TransferKind::p2p) return mixHash(agreedLength(call.bytes));
    return mixHash(mixHash(static_cast<uint64_t>(call.data.kind) << 32 | static_cast<uint64_t>(call.type) << 16 |
                           call.data.root) ^
                   static_cast<uint64_t>(call.bytes)) ^
           static_cast<uint64_t>(call.op);
}

LocalStream* streamOf(LocalProcess& process, const NcclCall& call) {
    std::lock_guard guard(process.mutex());
    return resolveStream(process, call.comm->device, call.stream, false);
}

void rememberPending(ncclComm& comm, StreamPoint point) {
    for (StreamPoint& known : comm.pending) {
        if (known.stream != point.stream) continue;
        known.seq = point.seq;
        return;
    }
    comm.pending.push_back(point);
}

void enqueueExchange(Arena& arena, StreamPoint point, const ncclComm& comm, ExchangeSpec data) {
    data.zero = zeroMemory;
    auto task = std::make_shared<ExchangeTask>(arena, data);
    DataPlane::instance().enqueue(point, [task, aborted = comm.aborted] { return *aborted || task->attempt(); });
}

double transferNoise(const LocalProcess& process, const ncclComm& comm, uint64_t key) {
    const Cluster& cluster = process.cluster();
    if (cluster.noise == 0) return 1;
    return std::max(0.2, 1 + cluster.noise * normalNoise(cluster.seed, 0x4e43434c, comm.hash, key));
}

/// The call as the program made it.
PluginEvent callEvent(const NcclCall& call) {
    PluginEvent event;
    event.isMessage = call.data.kind == TransferKind::p2p;
    event.function = call.function;
    event.count = call.count;
    event.datatype = datatypeText(call.type);
    event.root = static_cast<int>(call.data.root);
    event.userTag = call.userTag;
    return event;
}

/// What the collective, as the members number it, asks of this rank's stream.
OpSpec specOf(const LocalProcess& process, const NcclCall& call, const CollectiveCost& cost) {
    OpSpec spec;
    if (call.comm->size == 1) {  // NCCL copies, if anything
        spec.kind = OpKind::kernel;
        spec.workNs = 2000 + static_cast<int64_t>(2 * call.bytes / process.cluster().hbmGbps);
        return spec;
    }
    spec.kind = OpKind::transfer;
    PartSpec part{};
    part.comm = call.data.comm;
    part.member = call.data.rank;
    part.kind = call.data.kind;
    part.key = call.data.key;
    part.fingerprint = call.data.fingerprint;
    part.latencyNs = cost.latencyNs;
    part.busBytes = cost.busBytes * transferNoise(process, *call.comm, call.data.key);
    part.efficiency = cost.efficiency;
    part.networkShare = cost.networkShare;
    part.chunkBytes = cost.chunkBytes;
    spec.parts.push_back(part);
    return spec;
}

/// A rank's place in its communicator and what it expects of the others, as the exchange of data needs it.
void addressData(NcclCall& call) {
    call.data.fingerprint = fingerprint(call);
    call.data.comm = call.comm->shared;
    call.data.rank = static_cast<uint32_t>(call.comm->rank);
    call.data.size = static_cast<uint32_t>(call.comm->size);
}

/// The profiler plugin's events of a kernel's calls, in their order; of a graph's kernel those of its newest launch.
using Reported = std::shared_ptr<std::vector<void*>>;

/// Reports a kernel's calls now; when they are captured, at each launch of the graph instead, by the callback that
/// feeds NCCL's network proxies: inside one node there is none.
Reported announce(ncclComm& comm, const LocalStream& stream, std::vector<PluginEvent> events, DeviceWork& work) {
    auto reported = std::make_shared<std::vector<void*>>();
    if (!stream.capture) {
        const int channels = events.front().channels;
        *reported = reportGroup(comm, events);
        work.report.channels = channelEvents(comm, *reported, channels);
        return reported;
    }
    for (PluginEvent& event : events) event.apiCall = nullptr;  // long gone when the graph is launched
    if (comm.shape.nodes > 1)
        work.announce = [&comm, reported, events = std::move(events)] { *reported = reportGroup(comm, events); };
    return reported;
}

/// The driver call that launches NCCL's kernel, and that a full launch queue holds up.
void launchKernel(LocalProcess& process, ncclComm& comm, LocalStream& stream, cudaStream_t handle, DeviceWork work) {
    void* launch = ProfilerCalls::ofThread().beginKernelLaunch(comm, handle);
    {
        ApiCall driverCall(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, "cuLaunchKernelEx",
                           kLaunchNs);
        process.throttle(stream);
        std::lock_guard guard(process.mutex());
        perform(driverCall, stream, std::move(work));
    }
    ProfilerCalls::endKernelLaunch(launch);
}

ncclResult_t launchCollective(LocalProcess& process, NcclCall& call) {
    ncclComm& comm = *call.comm;
    ThreadClock& thread = process.clock();
    thread.ns += kEnqueueNs;
    LocalStream* stream = streamOf(process, call);
    if (!stream) return ncclInvalidArgument;
    std::optional<CollectiveCost> cost;
    if (ncclResult_t result =
            comm.tuner.choose(process.cluster(), comm.shape, comm.rules, call.data.kind, call.bytes, cost);
        result != ncclSuccess)
        return result;
    if (!cost) return ncclInvalidUsage;
    addressData(call);
    DeviceWork work =
        kernelWork(kernelName(process, call, *cost), cost->channels, kernelThreads(cost->algorithm, cost->protocol));
    const Reported reported = announce(comm, *stream, {pluginEvent(call, *cost, stream->capture != nullptr)}, work);
    work.issue = [&process, call, cost = *cost, reported](LocalStream& on, OpReport report) mutable {
        call.data.key = call.comm->collectives++;
        if (!reported->empty()) report.transfers = transfersOf(process.arena(), *call.comm, reported->front(), cost);
        StreamPoint point = process.submit(on, specOf(process, call, cost), report);
        rememberPending(*call.comm, point);
        enqueueExchange(process.arena(), point, *call.comm, call.data);
        return point;
    };
    launchKernel(process, comm, *stream, call.stream, std::move(work));
    return ncclSuccess;
}

/// How many messages leave, or reach, a rank in one group, whichever are more.
size_t messagesOneWay(const std::vector<NcclCall>& calls) {
    const auto sends = static_cast<size_t>(
        std::count_if(calls.begin(), calls.end(), [](const NcclCall& call) { return call.data.isSend; }));
    return std::max(sends, calls.size() - sends);
}

PartSpec partOf(const LocalProcess& process, const NcclCall& call, bool sameNode, size_t messages) {
    PartSpec part{};
    part.comm = call.data.comm;
    part.member = call.data.rank;
    part.kind = TransferKind::p2p;
    part.isSend = call.data.isSend;
    part.peer = call.data.peer;
    part.key = call.data.key;
    part.fingerprint = call.data.fingerprint;
    CollectiveCost cost;
    cost.latencyNs = static_cast<int64_t>(1000 * messageUs(process.cluster(), sameNode, messages));
    const CommShape ends{2, sameNode ? 1u : 2u, sameNode ? 2u : 1u};
    cost = inWorld(process.cluster(), ends, TransferKind::p2p, call.bytes, cost);
    part.latencyNs = cost.latencyNs;
    part.busBytes = call.bytes;
    part.efficiency = cost.efficiency;
    if (part.peer == part.member) part.latencyNs = 1000;
    return part;
}

StreamPoint issueMessages(LocalProcess& process, std::vector<NcclCall>& calls, const std::vector<void*>& events,
                          LocalStream& stream, OpReport report) {
    ncclComm& comm = *calls.front().comm;
    const Arena& arena = process.arena();
    const Comm& shared = arena.comms[comm.shared];
    auto hostOf = [&](uint32_t rank) { return arena.devices[arena.members[shared.firstMember + rank].device].hostKey; };
    OpSpec spec;
    spec.kind = OpKind::transfer;
    for (NcclCall& call : calls) {
        call.data.key = (call.data.isSend ? comm.sends : comm.receives)[call.data.peer]++;
        spec.parts.push_back(
            partOf(process, call, hostOf(call.data.rank) == hostOf(call.data.peer), messagesOneWay(calls)));
    }
    report.transfers = transfersOf(arena, comm, events, spec.parts);
    StreamPoint point = process.submit(stream, std::move(spec), report);
    rememberPending(comm, point);
    // Receives must not hold up this rank's own sends, so all sends are posted first.
    for (const NcclCall& call : calls)
        if (call.data.isSend) enqueueExchange(process.arena(), point, comm, call.data);
    for (const NcclCall& call : calls)
        if (!call.data.isSend) enqueueExchange(process.arena(), point, comm, call.data);
    return point;
}

/// All sends and receives of a group on one communicator and stream: one kernel, done when all of them are.
ncclResult_t launchMessages(LocalProcess& process, std::vector<NcclCall>& calls) {
    ncclComm& comm = *calls.front().comm;
    ThreadClock& thread = process.clock();
    thread.ns += kEnqueueNs * static_cast<int64_t>(calls.size());
    LocalStream* stream = streamOf(process, calls.front());
    if (!stream) return ncclInvalidArgument;
    for (NcclCall& call : calls) addressData(call);
    DeviceWork work =
        kernelWork(kSendRecvKernel, std::min<int>(16, static_cast<int>(calls.size()) * 2), kSendRecvThreads);
    const Reported reported = announce(comm, *stream, pluginEvents(calls), work);
    work.issue = [&process, calls, reported](LocalStream& on, const OpReport& report) mutable {
        return issueMessages(process, calls, *reported, on, report);
    };
    launchKernel(process, comm, *stream, calls.front().stream, std::move(work));
    return ncclSuccess;
}

/// NCCL's proxy tells the plugin about a collective soon after its end, whether the host waits for it or not.
void tellWhatEnded(LocalProcess& process) {
    if (!profilerPlugin().present()) return;
    {
        std::lock_guard guard(process.mutex());
        process.harvestEnded(process.clock().ns);
    }
    process.sendObservations();
}

ncclResult_t launchAll(std::vector<NcclCall> calls) {
    LocalProcess& process = LocalProcess::instance();
    ncclResult_t result = ncclSuccess;
    ProfilerCalls::ofThread().launching();
    std::vector<bool> taken(calls.size());
    for (size_t i = 0; i < calls.size() && result == ncclSuccess; i++) {
        if (taken[i]) continue;
        if (calls[i].data.kind != TransferKind::p2p) {
            result = launchCollective(process, calls[i]);
            continue;
        }
        std::vector<NcclCall> together;
        for (size_t k = i; k < calls.size(); k++) {
            bool same = calls[k].data.kind == TransferKind::p2p && calls[k].comm == calls[i].comm &&
                        calls[k].stream == calls[i].stream;
            if (!same || taken[k]) continue;
            taken[k] = true;
            together.push_back(calls[k]);
        }
        result = launchMessages(process, together);
    }
    ProfilerCalls::ofThread().done();
    process.publish(process.clock());
    tellWhatEnded(process);
    return result;
}

}  // namespace

int groupDepth() {
    return t_depth;
}

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
    LocalProcess& process = LocalProcess::instance();
    const LocalStream* stream = streamOf(process, call);
    call.apiEvent = ProfilerCalls::ofThread().call(*call.comm, callEvent(call), call.stream, stream && stream->capture,
                                                   t_depth + 1);
    if (t_depth > 0) {
        t_calls.push_back(std::move(call));
        return ncclSuccess;
    }
    std::vector<NcclCall> calls;
    calls.push_back(std::move(call));
    return launchAll(std::move(calls));
}

}  // namespace rankscope::vgpu
