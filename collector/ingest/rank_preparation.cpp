// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/rank_preparation.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "collector/ingest/communication_kernels.h"
#include "collector/ingest/recent_part.h"
#include "collector/ingest/row_order.h"

namespace rankscope::collector {
namespace {

using store::NcclKernel;

void sortKernels(RankRecording& recording) {
    const auto& streams = recording.streams;
    const std::vector<int64_t> place =
        sortRows(recording.kernels, [&streams](const store::Kernel& a, const store::Kernel& b) {
            if (a.startNs != b.startNs) return a.startNs < b.startNs;
            const LocalStream& s = streams[static_cast<size_t>(a.streamId)];
            const LocalStream& t = streams[static_cast<size_t>(b.streamId)];
            return std::tie(s.device, s.context, s.nativeId, a.correlationId, a.graphNode, a.durNs) <
                   std::tie(t.device, t.context, t.nativeId, b.correlationId, b.graphNode, b.durNs);
        });
    if (place.empty()) return;
    for (store::NcclCall& call : recording.ncclCalls) {
        if (call.kernelId) call.kernelId = place[static_cast<size_t>(*call.kernelId)];
    }
}

/// Rows that name a kernel, thread, stream or communicator that does not exist would break the joins; a source's
/// mistake costs the link only.
void dropDanglingLinks(RankRecording& recording) {
    const auto valid = [](int64_t index, size_t size) { return index >= 0 && static_cast<size_t>(index) < size; };
    for (store::NcclCall& call : recording.ncclCalls) {
        if (call.kernelId && !valid(*call.kernelId, recording.kernels.size())) call.kernelId.reset();
        if (call.communicatorId && !valid(*call.communicatorId, recording.communicators.size()))
            call.communicatorId.reset();
        if (call.streamId && !valid(*call.streamId, recording.streams.size())) call.streamId.reset();
        if (call.threadId && !valid(*call.threadId, recording.threads.size())) call.threadId.reset();
    }
    for (store::ProxyOp& op : recording.proxyOps) {
        if (op.callId && !valid(*op.callId, recording.ncclCalls.size())) op.callId.reset();
        if (op.communicatorId && !valid(*op.communicatorId, recording.communicators.size())) op.communicatorId.reset();
    }
    std::erase_if(recording.recorderCalls,
                  [&](const store::RecorderCall& call) { return !valid(call.callId, recording.ncclCalls.size()); });
    std::erase_if(recording.recorderGroups, [&](const LocalRecorderGroup& group) {
        return !valid(group.communicator, recording.communicators.size());
    });
}

template <typename Row>
void sortByStart(std::vector<Row>& rows) {
    sortRows(rows, [](const Row& a, const Row& b) { return a.startNs < b.startNs; });
}

void sortHostEvents(RankRecording& recording) {
    sortRows(recording.apiCalls, [](const store::ApiCall& a, const store::ApiCall& b) {
        return std::tie(a.startNs, a.threadId, a.source, a.correlationId) <
               std::tie(b.startNs, b.threadId, b.source, b.correlationId);
    });
    sortRows(recording.nvtx, [](const store::NvtxRange& a, const store::NvtxRange& b) {
        return std::tie(a.startNs, a.threadId, a.depth) < std::tie(b.startNs, b.threadId, b.depth);
    });
    const std::vector<int64_t> place =
        sortRows(recording.ncclCalls, [](const store::NcclCall& a, const store::NcclCall& b) {
            return std::tie(a.startNs, a.threadId) < std::tie(b.startNs, b.threadId);
        });
    for (store::ProxyOp& op : recording.proxyOps) {
        if (op.callId && !place.empty()) op.callId = place[static_cast<size_t>(*op.callId)];
    }
    for (store::RecorderCall& call : recording.recorderCalls)
        if (!place.empty()) call.callId = place[static_cast<size_t>(call.callId)];
    sortRows(recording.proxyOps, [](const store::ProxyOp& a, const store::ProxyOp& b) {
        return std::tie(a.startNs, a.durNs, a.callId, a.channel, a.isSend, a.peer) <
               std::tie(b.startNs, b.durNs, b.callId, b.channel, b.isSend, b.peer);
    });
}

/// What was sampled while the rank did nothing that is recorded would make the job longer than it was.
void placeCounters(RankRecording& recording) {
    if (recording.counters.empty()) return;
    int64_t firstNs = std::numeric_limits<int64_t>::max(), lastNs = std::numeric_limits<int64_t>::min();
    const auto widen = [&](const auto& rows) {
        for (const auto& row : rows) {
            firstNs = std::min(firstNs, row.startNs);
            if constexpr (requires { row.durNs.has_value(); })
                lastNs = std::max(lastNs, row.startNs + row.durNs.value_or(0));
            else
                lastNs = std::max(lastNs, row.startNs + row.durNs);
        }
    };
    widen(recording.kernels);
    widen(recording.memcpys);
    widen(recording.memsets);
    widen(recording.apiCalls);
    widen(recording.nvtx);
    const size_t outside = std::erase_if(
        recording.counters, [&](const store::Counter& row) { return row.timeNs < firstNs || row.timeNs > lastNs; });
    if (outside > 0)
        recording.losses.push_back({0, "source_absent", store::Severity::info, recording.rank, std::nullopt,
                                    static_cast<int64_t>(outside), std::nullopt, std::nullopt,
                                    "samples of counters from before its first and after its last event are left out"});
    sortRows(recording.counters, [](const store::Counter& a, const store::Counter& b) {
        return std::tie(a.timeNs, a.nameId) < std::tie(b.timeNs, b.nameId);
    });
}

void markNcclKernels(RankRecording& recording) {
    std::vector<signed char> byName(recording.strings.size(), -1);
    for (store::Kernel& kernel : recording.kernels) {
        if (kernel.nccl != NcclKernel::no) continue;
        signed char& known = byName[static_cast<size_t>(kernel.nameId)];
        if (known < 0) known = isCommunicationKernelName(recording.strings[kernel.nameId]);
        if (known) kernel.nccl = NcclKernel::byName;
    }
    for (const store::NcclCall& call : recording.ncclCalls) {
        // A call that was made up from the kernel's name is no evidence for the kernel.
        const bool told = (call.evidence & ~store::evidence::kInferred) != 0;
        if (call.kernelId && told) recording.kernels[static_cast<size_t>(*call.kernelId)].nccl = NcclKernel::byCall;
    }
}

/// Numbers collectives per communicator, and sends and receives per peer. Communicators are told apart by hash: the
/// same one may be listed twice.
void numberCalls(RankRecording& recording) {
    std::map<uint64_t, int64_t> collectives;
    std::map<std::tuple<uint64_t, store::Op, int32_t>, int64_t> messages;
    const auto hashOf = [&](int64_t communicator) {
        return recording.communicators[static_cast<size_t>(communicator)].hash;
    };
    sortRows(recording.callGaps, [](const LocalCallGap& a, const LocalCallGap& b) { return a.untilNs < b.untilNs; });
    auto gap = recording.callGaps.begin();
    for (store::NcclCall& call : recording.ncclCalls) {
        for (; gap != recording.callGaps.end() && gap->untilNs < call.startNs; ++gap) {
            const uint64_t hash = hashOf(gap->communicator);
            (gap->message ? messages[{hash, gap->message->first, gap->message->second}] : collectives[hash]) +=
                gap->calls;
        }
        if (!call.communicatorId) continue;
        const uint64_t hash = hashOf(*call.communicatorId);
        int64_t& next = store::isP2p(call.op) ? messages[{hash, call.op, call.peer.value_or(-1)}] : collectives[hash];
        constexpr int64_t kMostSequence = int64_t{1} << 61;  // a file may hold any number, and the next one is one more
        if (call.seq && *call.seq >= 0 && *call.seq <= kMostSequence) next = *call.seq;
        call.seq = next++;
    }
}

}  // namespace

void prepare(RankRecording& recording) {
    dropDanglingLinks(recording);
    sortKernels(recording);
    sortByStart(recording.memcpys);
    sortByStart(recording.memsets);
    sortByStart(recording.kernelSummaries);
    sortByStart(recording.kernelSpans);
    sortByStart(recording.synchronizations);
    sortByStart(recording.allocations);
    sortRows(recording.cudaEvents,
             [](const store::CudaEvent& a, const store::CudaEvent& b) { return a.timeNs < b.timeNs; });
    sortHostEvents(recording);
    placeCounters(recording);
    markNcclKernels(recording);
    numberCalls(recording);
    if (recording.part) keepRecent(recording, recording.part->sinceNs);
}

}  // namespace rankscope::collector
