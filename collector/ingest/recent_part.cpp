// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/recent_part.h"

#include <utility>
#include <vector>

namespace rankscope::collector {
namespace {

/// Erases the rows that are not wanted. Returns where each row is now; -1: it is gone.
template <typename Row, typename IsWanted>
std::vector<int64_t> keepRows(std::vector<Row>& rows, const IsWanted& isWanted) {
    std::vector<int64_t> place(rows.size(), -1);
    size_t kept = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
        if (!isWanted(rows[i])) continue;
        place[i] = static_cast<int64_t>(kept);
        if (kept != i) rows[kept] = std::move(rows[i]);
        ++kept;
    }
    rows.resize(kept);
    return place;
}

template <typename Row>
void keepSince(std::vector<Row>& rows, int64_t sinceNs) {
    keepRows(rows, [sinceNs](const Row& row) { return row.startNs >= sinceNs; });
}

}  // namespace

void keepRecent(RankRecording& recording, int64_t sinceNs) {
    const auto isRecent = [&](const store::NcclCall& call) {
        const int64_t atNs =
            call.kernelId ? recording.kernels[static_cast<size_t>(*call.kernelId)].startNs : call.startNs;
        return atNs >= sinceNs;
    };
    const std::vector<int64_t> calls = keepRows(recording.ncclCalls, isRecent);
    const std::vector<int64_t> kernels =
        keepRows(recording.kernels, [sinceNs](const store::Kernel& kernel) { return kernel.startNs >= sinceNs; });
    for (store::NcclCall& call : recording.ncclCalls)
        if (call.kernelId) call.kernelId = kernels[static_cast<size_t>(*call.kernelId)];
    keepSince(recording.proxyOps, sinceNs);
    for (store::ProxyOp& op : recording.proxyOps) {
        if (!op.callId) continue;
        op.callId = calls[static_cast<size_t>(*op.callId)];
        if (*op.callId < 0) op.callId.reset();
    }
    keepSince(recording.kernelSummaries, sinceNs);
    keepSince(recording.kernelSpans, sinceNs);
    keepSince(recording.memcpys, sinceNs);
    keepSince(recording.memsets, sinceNs);
    keepSince(recording.apiCalls, sinceNs);
    keepSince(recording.synchronizations, sinceNs);
    keepSince(recording.allocations, sinceNs);
    keepRows(recording.counters, [sinceNs](const store::Counter& counter) { return counter.timeNs >= sinceNs; });
    keepRows(recording.cudaEvents, [sinceNs](const store::CudaEvent& event) { return event.timeNs >= sinceNs; });
    // A range that is open tells what the host is in, however long it has been there.
    keepRows(recording.nvtx,
             [sinceNs](const store::NvtxRange& range) { return !range.durNs || range.startNs >= sinceNs; });
}

}  // namespace rankscope::collector
