// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/ingest/rank_recording.h"
#include "injector/capture_format/record_view.h"
#include "injector/capture_format/records.h"

namespace rankscope::collector {

/// A record and the ring it came from.
template <typename Record>
struct OnThread {
    uint32_t thread = 0;
    Record record;
};

/// What a capture file says, sorted by kind, texts resolved, nothing joined. Kernels and copies carry local stream and
/// name ids already.
struct RawCapture {
    capture::FileHeader header{};
    RankRecording recording;  ///< identity, strings, streams, devices, device activity, losses, sources are filled in

    std::vector<OnThread<capture::ApiCallRecord>> apiCalls;
    std::vector<OnThread<capture::AllocationRecord>> allocations;
    std::vector<OnThread<capture::NcclCallRecord>> ncclCalls;
    std::vector<OnThread<capture::NcclGroupRecord>> ncclGroups;
    std::vector<OnThread<capture::NcclPayloadRecord>> ncclPayloads;
    std::vector<OnThread<capture::NvtxRecord>> nvtx;  ///< of one thread in its order
    std::vector<capture::CuptiApiRecord> cuptiApis;
    std::vector<capture::ExternalCorrelationRecord> externalCorrelations;
    std::vector<capture::PluginCollRecord> pluginCalls;        ///< collectives and p2p
    std::vector<capture::PluginChannelRecord> pluginChannels;  ///< device times of the channels of those
    std::vector<capture::PluginProxyOpRecord> proxyOps;
    std::vector<capture::CallGapRecord> callGaps;
    std::vector<capture::CommunicatorRecord> communicators;
    std::vector<capture::CommunicatorEndRecord> communicatorEnds;
    std::vector<capture::ThreadRecord> threads;
    std::vector<capture::RankIdentityRecord> identities;
    std::optional<capture::ProcessEndRecord> processEnd;
    int64_t overheadNs = 0;
    std::map<uint16_t, int64_t> overheadNsByKind;  ///< of it, by OverheadRecord's aux
    int64_t cuptiHighWaterNs = 0;
    int64_t lastNs = 0;  ///< newest time in the file

    /// Local string id of a text the file defines; that of the empty text when it does not.
    int32_t text(capture::StringId id) const;

    std::unordered_map<capture::StringId, int32_t> textIds;
};

/// Reads the file, and the .ring beside it when the process died. Of a part of a process that may live the rings are
/// left out, what came behind it, and of what was over before it the bulk: what no call of NCCL, which are numbered, is
/// told by. Throws capture::CaptureError when it is no capture file.
RawCapture readRawCapture(const std::string& path, const std::optional<TimeSpan>& part = {});

/// False when a record's times cannot be true: a damaged or hostile file. It is counted as a loss.
bool timesPlausible(const capture::RecordView& view, int64_t processStartNs);

/// False where no part that begins at `sinceNs` or later has anything of the record, whose times are plausible: it
/// tells of something that was over before, and no call is numbered by it.
bool isAskedFor(const capture::RecordView& view, int64_t sinceNs);

}  // namespace rankscope::collector
