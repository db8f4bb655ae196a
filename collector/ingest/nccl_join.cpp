// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/nccl_join.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "collector/ingest/channel_kernels.h"
#include "collector/ingest/kernel_links.h"

namespace rankscope::collector {
namespace {

using store::NcclCall;
using store::Op;
namespace evidence = store::evidence;

/// A call under construction and what only the joining needs.
struct OpenCall {
    NcclCall row;
    uint64_t callId = 0;
    uint64_t order = 0;              ///< seq of the thread
    std::optional<uint64_t> handle;  ///< of the stream that it was called for
};

/// Messages of which every member sends one to every member count n times, as nccl-tests does.
int64_t bytesOf(Op op, int64_t chunkBytes, int32_t nRanks) {
    const bool perRank =
        op == Op::allGather || op == Op::reduceScatter || op == Op::allToAll || op == Op::gather || op == Op::scatter;
    return perRank ? chunkBytes * std::max(1, nRanks) : chunkBytes;
}

Op opOfName(const std::string& name) {
    static const std::map<std::string, Op> kOps = {
        {"ncclAllReduce", Op::allReduce}, {"ncclAllGather", Op::allGather}, {"ncclReduceScatter", Op::reduceScatter},
        {"ncclBroadcast", Op::broadcast}, {"ncclBcast", Op::broadcast},     {"ncclReduce", Op::reduce},
        {"ncclAlltoAll", Op::allToAll},   {"ncclAllToAll", Op::allToAll},   {"ncclGather", Op::gather},
        {"ncclScatter", Op::scatter},     {"ncclSend", Op::send},           {"ncclRecv", Op::recv}};
    const auto place = kOps.find(name);
    return place == kOps.end() ? Op::unknown : place->second;
}

/// What names a plugin record in a file: hash of its communicator, start, and its thread's counter.
using PluginKey = std::tuple<uint64_t, int64_t, uint32_t>;

class NcclJoiner {
  public:
    NcclJoiner(const RawCapture& raw, const ThreadOfRing& threads, RankRecording& recording)
        : m_raw(raw), m_threads(threads), m_recording(recording), m_links(raw, recording) {}
    void run();

  private:
    void makeCommunicators();
    int32_t communicatorOfHash(uint64_t hash);
    void addHooked();
    void addPayloads();
    void linkSingles();
    void linkGroups();
    void linkByLaunch(OpenCall& call);
    void addPluginFacts();
    void addKernelsOfPlugin();
    void placeUnfinished();
    void addProxyOps();
    void addGaps();
    std::optional<int32_t> threadOf(uint32_t ring) const;

    const RawCapture& m_raw;
    const ThreadOfRing& m_threads;
    RankRecording& m_recording;
    KernelLinks m_links;
    std::map<uint32_t, int32_t> m_communicatorOfIndex;
    std::vector<OpenCall> m_calls;
    std::map<PluginKey, size_t> m_callOfPlugin;
};

std::optional<int32_t> NcclJoiner::threadOf(uint32_t ring) const {
    const auto place = m_threads.find(ring);
    return place == m_threads.end() ? std::nullopt : std::optional(place->second);
}

void NcclJoiner::makeCommunicators() {
    for (const auto& record : m_raw.communicators) {
        const auto [place, isNew] =
            m_communicatorOfIndex.try_emplace(record.index, static_cast<int32_t>(m_recording.communicators.size()));
        if (isNew) m_recording.communicators.emplace_back();
        LocalCommunicator& communicator = m_recording.communicators[static_cast<size_t>(place->second)];
        // A communicator told again is told better: its hash became known.
        communicator.hash = record.hash;
        communicator.identity = record.head.aux == 1 ? "comm_hash" : record.head.aux == 2 ? "unique_id" : "inferred";
        communicator.commRank = record.rank;
        communicator.nRanks = std::clamp(record.nRanks, 0, 1 << 24);
        communicator.name = m_recording.strings[m_raw.text(record.name)];
        if (!communicator.createNs) communicator.createNs = record.timeNs;
        const auto parent = m_communicatorOfIndex.find(record.parent);
        if (record.parent != 0 && parent != m_communicatorOfIndex.end()) communicator.parent = parent->second;
    }
    constexpr const char* kEnds[] = {"destroy", "destroy", "abort", "finalize"};
    for (const auto& record : m_raw.communicatorEnds) {
        const auto place = m_communicatorOfIndex.find(record.index);
        if (place == m_communicatorOfIndex.end()) continue;
        LocalCommunicator& communicator = m_recording.communicators[static_cast<size_t>(place->second)];
        communicator.destroyNs = record.timeNs;
        communicator.endKind = kEnds[record.head.aux < std::size(kEnds) ? record.head.aux : 1];
    }
}

int32_t NcclJoiner::communicatorOfHash(uint64_t hash) {
    auto& all = m_recording.communicators;
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].hash == hash) return static_cast<int32_t>(i);
    }
    LocalCommunicator& communicator = all.emplace_back();
    communicator.hash = hash;
    communicator.identity = "comm_hash";
    for (const auto& [ring, payload] : m_raw.ncclPayloads) {
        if (payload.commHash != hash || payload.nRanks <= 0) continue;  // payloads of init calls tell the size
        communicator.nRanks = std::min(payload.nRanks, 1 << 24);
        communicator.commRank = payload.rank;
        communicator.createNs = payload.timeNs;
    }
    return static_cast<int32_t>(all.size()) - 1;
}

void NcclJoiner::addHooked() {
    for (const auto& [ring, record] : m_raw.ncclCalls) {
        if (record.result != 0 && record.result != 7) continue;  // 7: ncclInProgress of a non-blocking communicator
        OpenCall call;
        NcclCall& row = call.row;
        row.threadId = threadOf(ring);
        const auto place = m_communicatorOfIndex.find(record.communicator);
        if (place != m_communicatorOfIndex.end()) row.communicatorId = place->second;
        row.startNs = record.startNs;
        row.durNs = record.endNs - record.startNs;
        row.op = record.head.aux <= static_cast<uint16_t>(Op::recv) ? static_cast<Op>(record.head.aux) : Op::unknown;
        row.count = static_cast<int64_t>(record.count);
        row.dataType = record.dataType <= static_cast<uint8_t>(store::DataType::f8e5m2)
                           ? static_cast<store::DataType>(record.dataType)
                           : store::DataType::unknown;
        const int32_t element = store::elementBytes(row.dataType);
        const int32_t nRanks =
            row.communicatorId ? m_recording.communicators[static_cast<size_t>(*row.communicatorId)].nRanks : 0;
        // A count that cannot be true must not overflow the product.
        if (element > 0 && record.count < (uint64_t{1} << 40) && (nRanks > 0 || bytesOf(row.op, 1, 2) == 1)) {
            const auto bytes = static_cast<unsigned __int128>(record.count) * static_cast<unsigned>(element) *
                               static_cast<unsigned>(std::max(1, nRanks));
            if (bytes < (static_cast<unsigned __int128>(1) << 62))
                row.bytes = bytesOf(row.op, static_cast<int64_t>(record.count) * element, nRanks);
        }
        if (record.reduceOp != 255) row.reduceOp = record.reduceOp;
        if (record.peerOrRoot >= 0) row.peer = record.peerOrRoot;
        if (record.groupId != 0) row.groupId = record.groupId;
        row.streamId = m_links.streamOfHandle(record.stream);
        row.evidence = evidence::kHook;
        call.callId = record.callId;
        call.handle = record.stream;
        call.order = record.seq;
        m_calls.push_back(call);
    }
}

/// NCCL's own ranges: they confirm hooked calls, and show calls that bypassed the hooks (dlsym of a handle).
void NcclJoiner::addPayloads() {
    if (m_raw.ncclPayloads.empty()) return;
    std::map<std::pair<uint32_t, uint32_t>, const capture::NvtxRecord*> pushes;  // by ring and seq
    for (const auto& [ring, record] : m_raw.nvtx) {
        if (record.head.type == capture::RecordType::nvtxPush) pushes[{ring, record.seq}] = &record;
    }
    std::map<std::pair<int32_t, int64_t>, int64_t> durationByStart;  // of NCCL's ranges
    for (const store::NvtxRange& range : m_recording.nvtx) {
        if (range.domainId && range.threadId && range.durNs)
            durationByStart[{*range.threadId, range.startNs}] = *range.durNs;
    }
    std::map<std::pair<int32_t, int64_t>, size_t> hookedByStart;
    for (size_t i = 0; i < m_calls.size(); ++i) {
        if (m_calls[i].row.threadId) hookedByStart[{*m_calls[i].row.threadId, m_calls[i].row.startNs}] = i;
    }
    for (const auto& [ring, payload] : m_raw.ncclPayloads) {
        const std::optional<int32_t> thread = threadOf(ring);
        if (payload.head.aux != 1 || !thread) continue;
        const auto push = pushes.find({ring, payload.seq});
        const Op op =
            push == pushes.end() ? Op::unknown : opOfName(m_recording.strings[m_raw.text(push->second->name)]);
        auto around = hookedByStart.upper_bound({*thread, payload.timeNs});
        if (around != hookedByStart.begin()) {
            OpenCall& call = m_calls[std::prev(around)->second];
            if (*call.row.threadId == *thread && payload.timeNs <= call.row.startNs + call.row.durNs) {
                call.row.evidence |= evidence::kNvtxPayload;
                continue;
            }
        }
        if (op == Op::unknown) continue;
        OpenCall call;
        call.row.threadId = thread;
        call.row.communicatorId = communicatorOfHash(payload.commHash);
        call.row.startNs = payload.timeNs;
        const auto range = durationByStart.find({*thread, payload.timeNs});
        if (range != durationByStart.end()) call.row.durNs = range->second;
        call.row.op = op;
        const int32_t nRanks = m_recording.communicators[static_cast<size_t>(*call.row.communicatorId)].nRanks;
        if (payload.bytes < (uint64_t{1} << 38) && (nRanks > 0 || bytesOf(op, 1, 2) == 1))
            call.row.bytes = bytesOf(op, static_cast<int64_t>(payload.bytes), nRanks);
        if (payload.peerOrRoot >= 0) call.row.peer = payload.peerOrRoot;
        call.row.evidence = evidence::kNvtxPayload;
        call.order = payload.seq;
        linkByLaunch(call);
        m_calls.push_back(call);
    }
}

void NcclJoiner::linkByLaunch(OpenCall& call) {
    const int64_t kernel =
        m_links.kernelLaunchedWithin(*call.row.threadId, call.row.startNs, call.row.startNs + call.row.durNs);
    if (kernel < 0) return;
    call.row.kernelId = kernel;
    call.row.streamId = m_recording.kernels[static_cast<size_t>(kernel)].streamId;
}

void NcclJoiner::linkSingles() {
    for (OpenCall& call : m_calls) {
        if (call.callId == 0 || call.row.kernelId) continue;
        const std::vector<int64_t> kernels = m_links.kernelsOfExternal(call.callId);
        if (kernels.empty()) continue;
        call.row.kernelId = m_links.longest(kernels);
        call.row.evidence |= evidence::kExternalCorrelation;
    }
}

void NcclJoiner::linkGroups() {
    // Calls of a group, by thread (group ids count per thread), group and stream, in their order.
    std::map<std::tuple<int32_t, uint32_t>, std::vector<OpenCall*>> members;
    for (OpenCall& call : m_calls) {
        if (call.row.groupId && call.row.threadId && !call.row.kernelId)
            members[{*call.row.threadId, static_cast<uint32_t>(*call.row.groupId)}].push_back(&call);
    }
    for (const auto& [ring, group] : m_raw.ncclGroups) {
        const std::optional<int32_t> thread = threadOf(ring);
        const auto place = thread ? members.find({*thread, group.groupId}) : members.end();
        if (place == members.end()) continue;
        std::map<int32_t, std::vector<int64_t>> kernelsOfStream;
        for (const int64_t kernel : m_links.kernelsOfExternal(group.callId))
            kernelsOfStream[m_recording.kernels[static_cast<size_t>(kernel)].streamId].push_back(kernel);
        if (kernelsOfStream.empty()) continue;
        std::map<int32_t, std::vector<OpenCall*>> callsOfStream;
        for (OpenCall* call : place->second) {
            // A stream whose handle CUPTI did not tell: all kernels of the group are on the one stream then, or nobody
            // knows.
            const int32_t stream = call->row.streamId && kernelsOfStream.count(*call->row.streamId)
                                       ? *call->row.streamId
                                       : kernelsOfStream.begin()->first;
            callsOfStream[stream].push_back(call);
        }
        for (auto& [stream, calls] : callsOfStream) {
            const std::vector<int64_t>& kernels = kernelsOfStream[stream];
            for (size_t i = 0; i < calls.size(); ++i) {
                calls[i]->row.kernelId = kernels[std::min(kernels.size() - 1, i * kernels.size() / calls.size())];
                calls[i]->row.streamId = stream;
                calls[i]->row.evidence |= evidence::kExternalCorrelation;
            }
        }
    }
}

void NcclJoiner::addPluginFacts() {
    using Key = std::pair<uint64_t, Op>;
    std::map<Key, std::vector<const capture::PluginCollRecord*>> events;
    for (const auto& record : m_raw.pluginCalls) {
        if (record.head.aux <= static_cast<uint16_t>(Op::recv))
            events[{record.commHash, static_cast<Op>(record.head.aux)}].push_back(&record);
    }
    std::map<Key, size_t> next;
    for (auto& [key, list] : events) {
        std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) {
            return std::tie(a->startNs, a->seq) < std::tie(b->startNs, b->seq);
        });
    }
    for (OpenCall& call : m_calls) {
        if (!call.row.communicatorId) continue;
        const Key key{m_recording.communicators[static_cast<size_t>(*call.row.communicatorId)].hash, call.row.op};
        const auto place = events.find(key);
        if (place == events.end() || next[key] >= place->second.size()) continue;
        const capture::PluginCollRecord& record = *place->second[next[key]++];
        call.row.algorithm =
            record.algorithm <= 7 ? static_cast<store::Algorithm>(record.algorithm) : store::Algorithm::unknown;
        call.row.protocol =
            record.protocol <= 3 ? static_cast<store::Protocol>(record.protocol) : store::Protocol::unknown;
        if (record.nChannels > 0) call.row.channels = record.nChannels;
        m_callOfPlugin.emplace(PluginKey{record.commHash, record.startNs, record.seq},
                               static_cast<size_t>(&call - m_calls.data()));
        call.row.evidence |= evidence::kPlugin;
    }
}

/// Where no kernel of the device was recorded, what the plugin saw of NCCL's own.
void NcclJoiner::addKernelsOfPlugin() {
    if (!m_recording.kernels.empty() || m_raw.pluginChannels.empty()) return;
    std::multimap<PluginCallName, ChannelCall> names;
    for (const auto& [key, call] : m_callOfPlugin)
        names.emplace(PluginCallName{std::get<0>(key), std::get<2>(key)}, ChannelCall{call, std::get<1>(key)});
    std::vector<NcclCall*> calls;
    std::vector<std::optional<uint64_t>> handles;
    for (OpenCall& call : m_calls) {
        calls.push_back(&call.row);
        handles.push_back(call.handle);
    }
    addKernelsOfChannels(m_raw, names, handles, std::move(calls), m_recording);
}

/// A process that drives several devices has several members of a communicator.
void NcclJoiner::addProxyOps() {
    const auto& communicators = m_recording.communicators;
    for (const auto& record : m_raw.proxyOps) {
        store::ProxyOp row;
        const bool isForeign = (record.flags & 1) != 0;
        const auto call = m_callOfPlugin.find(PluginKey{record.commHash, record.parentStartNs, record.parentSeq});
        if (call != m_callOfPlugin.end()) row.callId = static_cast<int64_t>(call->second);
        for (size_t i = 0; i < communicators.size() && !isForeign && record.commHash != 0; ++i) {
            if (communicators[i].hash != record.commHash) continue;
            if (!row.communicatorId || communicators[i].commRank == record.rank)
                row.communicatorId = static_cast<int64_t>(i);
        }
        row.startNs = record.startNs;
        row.durNs = record.endNs - record.startNs;
        row.channel = record.channel;
        row.peer = record.peer;
        row.isSend = record.isSend != 0;
        row.bytes = static_cast<int64_t>(record.bytes);
        row.steps = record.steps;
        row.gpuWaitNs = record.gpuWaitNs;
        row.peerWaitNs = record.peerWaitNs;
        row.networkWaitNs = record.networkWaitNs;
        if (isForeign) row.onBehalfOf = record.rank;
        m_recording.proxyOps.push_back(row);
    }
}

void NcclJoiner::addGaps() {
    for (const auto& record : m_raw.callGaps) {
        const auto communicator = m_communicatorOfIndex.find(record.communicator);
        if (communicator == m_communicatorOfIndex.end()) continue;
        LocalCallGap gap{communicator->second, {}, record.fromNs, record.untilNs, record.calls};
        if (record.head.aux != 0) gap.message = {static_cast<Op>(record.head.aux), record.peer};
        m_recording.callGaps.push_back(gap);
    }
}

/// CUPTI does not tell the handles of streams. Launches and calls whose kernels are recorded do, and so place those
/// that never ran.
void NcclJoiner::placeUnfinished() {
    if (std::ranges::none_of(m_calls, [](const OpenCall& call) { return call.handle && !call.row.streamId; })) return;
    std::unordered_map<uint64_t, int32_t> streamOf;
    std::vector<int64_t> kernels;
    for (const store::ApiCall& call : m_recording.apiCalls) {
        if (call.kind != store::ApiKind::launch || !call.argument || !call.correlationId) continue;
        kernels.clear();
        m_links.addKernelsOf(*call.correlationId, kernels);
        if (kernels.size() == 1)
            streamOf[static_cast<uint64_t>(*call.argument)] =
                m_recording.kernels[static_cast<size_t>(kernels.front())].streamId;
    }
    for (const OpenCall& call : m_calls)
        if (call.handle && call.row.kernelId && call.row.streamId) streamOf[*call.handle] = *call.row.streamId;
    for (OpenCall& call : m_calls) {
        if (call.row.streamId || !call.handle) continue;
        if (const auto known = streamOf.find(*call.handle); known != streamOf.end()) call.row.streamId = known->second;
    }
}

void NcclJoiner::run() {
    makeCommunicators();
    addHooked();
    addPayloads();
    linkSingles();
    linkGroups();
    // Calls with equal stamps (a virtual clock) come in the order of their thread.
    std::stable_sort(m_calls.begin(), m_calls.end(), [](const OpenCall& a, const OpenCall& b) {
        return std::tie(a.row.startNs, a.row.threadId, a.order) < std::tie(b.row.startNs, b.row.threadId, b.order);
    });
    addPluginFacts();
    addKernelsOfPlugin();
    for (OpenCall& call : m_calls) {
        if (call.row.kernelId && !call.row.streamId)
            call.row.streamId = m_recording.kernels[static_cast<size_t>(*call.row.kernelId)].streamId;
    }
    placeUnfinished();
    for (const OpenCall& call : m_calls) m_recording.ncclCalls.push_back(call.row);
    addProxyOps();
    addGaps();
}

}  // namespace

void joinNcclCalls(const RawCapture& raw, const ThreadOfRing& threads, RankRecording& recording) {
    NcclJoiner(raw, threads, recording).run();
}

}  // namespace rankscope::collector
