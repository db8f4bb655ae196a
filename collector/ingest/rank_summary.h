// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// What the joins across ranks need to know of one NCCL call. Times are on the rank's host clock.
struct CallFact {
    int32_t communicator = -1;  ///< local index, -1 unknown
    store::Op op = store::Op::unknown;
    store::DataType dataType = store::DataType::unknown;
    store::Algorithm algorithm = store::Algorithm::unknown;
    store::Protocol protocol = store::Protocol::unknown;
    int32_t peer = -1;
    int64_t seq = -1;
    int64_t bytes = -1;  ///< -1 unknown
    int64_t hostStartNs = 0;
    int64_t callIndex = 0;     ///< position in the rank's nccl_call rows
    int64_t kernelIndex = -1;  ///< position in the rank's kernel rows, -1 unknown
    int64_t arrivalNs = 0;     ///< start and end of that kernel
    int64_t endNs = 0;
};

/// A host range that may mark a step. deviceStartNs and deviceEndNs are its ends on the device's time line: not before
/// the work that was launched earlier is done, because the host runs ahead of the device.
struct RangeFact {
    std::string pattern;  ///< its name without a trailing number
    int32_t depth = 0;
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t deviceStartNs = 0;
    int64_t deviceEndNs = 0;
};

/// Where a rank's kernels are cut into steps. deviceNs as in RangeFact.
struct StepMark {
    int64_t hostNs = 0;
    int64_t deviceNs = 0;
};

/// The small part of a prepared recording that stays in memory for all ranks.
struct RankSummary {
    /// kernel, memcpy, memset, api_call, synchronization, cuda_event, allocation, nvtx, nccl_call, proxy_op,
    /// kernel_summary, kernel_span, counter
    static constexpr size_t kEventTables = 13;
    static constexpr size_t kKernelTable = 0;
    static constexpr size_t kNcclCallTable = 8;
    static constexpr size_t kKernelSpanTable = 11;

    int32_t rank = 0;
    std::optional<int64_t> localRank;
    int32_t worldSize = -1;
    int32_t device = -1;
    std::string busId;  ///< of that device; empty: unknown
    std::string hostName, bootId;
    store::Process process;
    store::RankState state = store::RankState::complete;
    int64_t startUnixNs = 0;
    int64_t startUnixAtNs = 0;
    std::map<std::string, std::string> meta;
    std::vector<LocalStream> streams;
    std::vector<LocalThread> threads;
    std::vector<LocalDevice> devices;
    std::vector<LocalMachineLink> machineLinks;
    std::vector<LocalCommunicator> communicators;
    std::vector<store::FailedAllocation> failedAllocations;  ///< times of the host
    std::vector<store::RecorderCall> recorderCalls;          ///< times of the host, callId by position
    std::vector<LocalRecorderGroup> recorderGroups;
    bool recorderFromStart = false;
    std::vector<store::SourceStatus> sources;
    std::vector<store::Loss> losses;

    std::array<int64_t, kEventTables> rowCounts{};
    int64_t firstNs = std::numeric_limits<int64_t>::max();  ///< of any event; firstNs > lastNs when there is none
    int64_t lastNs = std::numeric_limits<int64_t>::min();
    int64_t deviceFirstNs = std::numeric_limits<int64_t>::max();  ///< of device activity
    int64_t deviceLastNs = std::numeric_limits<int64_t>::min();
    std::vector<CallFact> calls;    ///< in the order of nccl_call
    std::vector<RangeFact> ranges;  ///< in order of start
    bool computes = false;          ///< it has kernels that do not communicate
    /// Host's times between which calls were left out, in order; they do not meet.
    std::vector<std::pair<int64_t, int64_t>> gaps;
    /// Boundaries of steps that its kernels tell; empty where they tell none, and where ranges do.
    std::vector<StepMark> updateMarks, periodMarks;
};

/// `recording` has been prepared.
RankSummary summarize(const RankRecording& recording);

}  // namespace rankscope::collector
