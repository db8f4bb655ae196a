// SPDX-License-Identifier: Apache-2.0
// What one rank recorded, before anything is joined across ranks. Captures and importers both fill this, and
// TraceBuilder does the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/store/event_model.h"

namespace rankscope::collector {

/// On a host's clock.
struct TimeSpan {
    int64_t sinceNs = 0;
    int64_t untilNs = 0;
};

/// Texts of one recording: ids 0, 1… in order of first use.
class LocalStrings {
  public:
    int32_t intern(std::string_view text);
    const std::string& operator[](int32_t id) const { return *m_texts[static_cast<size_t>(id)]; }
    size_t size() const noexcept { return m_texts.size(); }

  private:
    std::unordered_map<std::string, int32_t> m_ids;
    std::vector<const std::string*> m_texts;  // keys of m_ids, which stay where they are
};

struct LocalStream {
    int32_t device = 0;  ///< CUDA ordinal
    int64_t context = 0;
    int64_t nativeId = 0;
    std::optional<int64_t> handle;
    std::optional<int64_t> priority;
};

struct LocalThread {
    std::optional<int64_t> tid;
    std::string name;
};

struct LocalDevice {
    int32_t ordinal = 0;
    std::string name;
    std::optional<int64_t> memoryBytes, multiprocessors, computeCapability;
};

/// What joins a device of the process to others, or its host to other hosts.
struct LocalMachineLink {
    std::optional<int32_t> device;   ///< CUDA ordinal; none: the host's
    std::string kind, name, source;  ///< as in the table machine_link
    int64_t count = 0;
    std::optional<int64_t> generation, bytesPerS;
};

struct LocalCommunicator {
    uint64_t hash = 0;  ///< the same on every member, different from every other communicator of the run
    std::string identity = "inferred";  ///< comm_hash | unique_id | process_group | inferred | assumed
    int32_t commRank = -1;              ///< rank in it, -1 unknown
    int32_t nRanks = 0;                 ///< 0 unknown
    int32_t parent = -1;                ///< index of the parent, -1 none
    std::string name;
    std::optional<int64_t> createNs, destroyNs;
    std::optional<std::string> endKind;
};

/// What a flight recorder tells of a process group beside its calls.
struct LocalRecorderGroup {
    int32_t communicator = -1;                   ///< into communicators
    std::string key;                             ///< name and description, the same in every dump
    std::vector<int32_t> members;                ///< global ranks by rank in the group; empty: not told
    std::optional<int64_t> enqueued, completed;  ///< as in the table recorder_group
    /// The recorder's own counters of the group, which count collectives or messages, whichever came last.
    std::optional<int64_t> lastEnqueued, lastCompleted;
};

/// Calls that the recording left out: those behind them count on.
struct LocalCallGap {
    int32_t communicator = -1;                         ///< into communicators
    std::optional<std::pair<store::Op, int>> message;  ///< which, and its peer; none: collectives
    int64_t fromNs = 0, untilNs = 0;                   ///< starts of the first and the last
    int64_t calls = 0;
};

/// One rank. Times are nanoseconds of the host's clock (any epoch, the same for all ranks of a host). Every list may be
/// in any order; its rows' `id` and `rank` are ignored, and the other *Id fields are indices into this struct: nameId
/// and domainId into strings, streamId into streams, threadId into threads, NcclCall::communicatorId into
/// communicators, NcclCall::kernelId into kernels (as pushed; -1 or NULL none).
struct RankRecording {
    int32_t rank = 0;
    std::optional<int64_t> localRank;
    int32_t worldSize = -1;  ///< -1 unknown
    int32_t device = -1;     ///< CUDA ordinal it computes on; -1: that of its first kernel
    std::string busId;       ///< where that device is, as the driver says ("0000:3b:00.0"); empty: unknown
    std::string hostName;
    std::string bootId;
    store::Process process;  ///< id and hostId are ignored
    store::RankState state = store::RankState::complete;
    int64_t startUnixNs = 0;  ///< wall-clock time at `startUnixAtNs` of the host's clock; 0 unknown
    int64_t startUnixAtNs = 0;
    std::optional<TimeSpan> part;             ///< what was over before it is not wanted
    std::map<std::string, std::string> meta;  ///< copied into the trace from the lowest rank that has the key

    LocalStrings strings;
    std::vector<LocalStream> streams;
    std::vector<LocalThread> threads;
    std::vector<LocalDevice> devices;
    std::vector<LocalMachineLink>
        machineLinks;  ///< of its devices and its host; each rank of a host may tell the host's, the same or fewer
    std::vector<LocalCommunicator> communicators;

    std::vector<store::Kernel> kernels;  ///< nccl: byCall where the source says so; TraceBuilder adds byName and what
                                         ///< NcclCall::kernelId proves
    std::vector<store::Memcpy> memcpys;
    std::vector<store::Memset> memsets;
    std::vector<store::ApiCall> apiCalls;
    std::vector<store::Synchronization> synchronizations;
    std::vector<store::CudaEvent> cudaEvents;
    std::vector<store::Allocation> allocations;
    std::vector<store::FailedAllocation> failedAllocations;
    std::vector<store::NvtxRange> nvtx;
    /// seq may be left NULL: then the k-th call (by start) of a communicator is its k-th collective; p2p calls count
    /// per peer and direction.
    std::vector<store::NcclCall> ncclCalls;
    /// Ranks in the call's group where the source tells that without the group itself; empty, or one per call as
    /// pushed, 0 unknown. For importers only.
    std::vector<int32_t> toldGroupSizes;
    std::vector<store::ProxyOp>
        proxyOps;  ///< communicatorId and callId: indices into communicators and ncclCalls, as pushed
    std::vector<store::KernelSummary> kernelSummaries;  ///< of captures of `run --light=kernels`
    std::vector<store::KernelSpan> kernelSpans;
    std::vector<LocalCallGap> callGaps;    ///< of captures of `run --light`
    std::vector<store::Counter> counters;  ///< those outside the time of the other events are left out
    /// Of a flight recorder: callId as pushed, one for each of ncclCalls.
    std::vector<store::RecorderCall> recorderCalls;
    std::vector<LocalRecorderGroup> recorderGroups;
    bool recorderFromStart = false;    ///< every call of the process is among ncclCalls
    bool recorderKnowsGroups = false;  ///< all groups that it ever called on are among recorderGroups
    std::vector<store::SourceStatus> sources;
    std::vector<store::Loss> losses;  ///< rank may be left NULL
};

}  // namespace rankscope::collector
