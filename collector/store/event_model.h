// SPDX-License-Identifier: Apache-2.0
// The rows of trace.db as plain structs, one per table, fields in column order. schema.sql says what each column means.
// Ids are 64-bit row ids; std::optional is NULL. In a RankRecording (collector/ingest/rank_recording.h) the *Id fields
// are indices local to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/store/maybe_number.h"
#include "collector/store/vocabulary.h"

namespace rankscope::store {

template <typename T>
using Maybe = std::optional<T>;

struct Host {
    int64_t id = 0;
    std::string name;
    Maybe<std::string> bootId;
};

struct ClockModel {
    int64_t hostId = 0;
    std::string method;  ///< reference | same_host | collectives | none
    int64_t anchorNs = 0;
    int64_t offsetNs = 0;
    int64_t driftPpb = 0;
    int64_t boundNs = 0;
    int64_t samples = 0;
};

struct Process {
    int64_t id = 0;
    int64_t hostId = 0;
    int64_t pid = 0;
    Maybe<int64_t> parentPid;
    int64_t attempt = 0;
    Maybe<std::string> executable;
    Maybe<int64_t> startNs;
    Maybe<int64_t> endNs;
    std::string endKind = "exit";  ///< exit | _exit | signal | exec | vanished | running | unknown
    Maybe<int64_t> endCode;
    Maybe<std::string> identitySource;
    Maybe<std::string> captureFile;
};

struct Rank {
    int32_t rank = 0;
    Maybe<int64_t> processId;
    Maybe<int64_t> hostId;
    Maybe<int64_t> localRank;
    Maybe<int64_t> deviceId;
    RankState state = RankState::complete;
};

struct Device {
    int64_t id = 0;
    int64_t hostId = 0;
    int32_t ordinal = 0;
    Maybe<std::string> name;
    Maybe<int64_t> memoryBytes;
    Maybe<int64_t> multiprocessors;
    Maybe<int64_t> computeCapability;
};

struct MachineLink {
    int64_t id = 0;
    int64_t hostId = 0;
    Maybe<int32_t> rank;  ///< whose device it belongs to; none: the host's
    std::string kind;     ///< nvlink | pcie | infiniband | ethernet
    std::string name;
    int64_t count = 0;  ///< links that are up
    Maybe<int64_t> generation;
    Maybe<int64_t> bytesPerS;  ///< one direction, all `count` together
    std::string source;        ///< nvml | sysfs
};

struct Thread {
    int64_t id = 0;
    int64_t processId = 0;
    Maybe<int32_t> rank;
    Maybe<int64_t> tid;
    Maybe<std::string> name;
};

struct Stream {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int64_t> deviceId;
    int64_t context = 0;
    int64_t nativeId = 0;
    Maybe<int64_t> handle;
    Maybe<int64_t> priority;
};

struct Communicator {
    int64_t id = 0;
    int64_t hash = 0;
    std::string identity;  ///< comm_hash | unique_id | process_group | inferred
    int32_t nRanks = 0;
    Maybe<int64_t> parentId;
    Maybe<std::string> name;
    int32_t nodeCount = 0;
};

struct CommunicatorMember {
    int64_t communicatorId = 0;
    int32_t commRank = 0;
    int32_t rank = 0;
    Maybe<int64_t> createNs;
    Maybe<int64_t> destroyNs;
    Maybe<std::string> endKind;
};

struct Kernel {
    int64_t id = 0;
    int32_t rank = 0;
    int32_t streamId = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int32_t nameId = 0;
    Maybe<uint32_t> correlationId;
    NcclKernel nccl = NcclKernel::no;
    Maybe<uint32_t> gridBlocks;
    Maybe<uint32_t> blockThreads;
    Maybe<int64_t> graphNode;
};

struct Memcpy {
    int64_t id = 0;
    int32_t rank = 0;
    int32_t streamId = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int64_t bytes = 0;
    int32_t kind = 0;
    Maybe<int32_t> srcMemory;
    Maybe<int32_t> dstMemory;
    Maybe<uint32_t> correlationId;
};

struct Memset {
    int64_t id = 0;
    int32_t rank = 0;
    int32_t streamId = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int64_t bytes = 0;
    Maybe<uint32_t> correlationId;
};

struct ApiCall {
    int64_t id = 0;
    int32_t rank = 0;
    int32_t threadId = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int32_t nameId = 0;
    ApiKind kind = ApiKind::other;
    ApiSource source = ApiSource::hook;
    Maybe<uint32_t> correlationId;
    Maybe<int64_t> argument;
};

struct Synchronization {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int32_t> streamId;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int32_t kind = 0;
    Maybe<int64_t> eventId;
    Maybe<uint32_t> correlationId;
};

struct CudaEvent {
    int64_t id = 0;
    int32_t rank = 0;
    int32_t streamId = 0;
    int64_t timeNs = 0;
    int64_t eventId = 0;
    Maybe<uint32_t> correlationId;
};

struct Allocation {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int32_t> threadId;
    int64_t startNs = 0;
    int64_t durNs = 0;
    bool free = false;
    Maybe<int64_t> bytes;
    int32_t nameId = 0;
};

struct ThreadStack {
    int64_t id = 0;
    int32_t rank = 0;
    int32_t reading = 0;
    Maybe<int64_t> readNs;
    int64_t stalledNs = 0;
    int64_t tid = 0;
    std::string name;
    Maybe<std::string> state;
    std::string language;
    std::string frames;
};

struct DeviceHealth {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int64_t> timeNs;
    int64_t readings = 1;
    Maybe<int64_t> smMhz, smMaxMhz, memoryMhz, memoryMaxMhz;
    Maybe<int64_t> clocksEvents;  ///< bits of nvmlClocksEventReasons
    Maybe<int64_t> powerMw, powerLimitMw;
    Maybe<int64_t> temperatureC;
    Maybe<int64_t> eccCorrected, eccUncorrected, nvlinkErrors;  ///< counted until then
    Maybe<int64_t> memoryUsedBytes, memoryTotalBytes;
    Maybe<int64_t> utilizationPercent;
    Maybe<int64_t> xid;
};

struct PortCounter {
    int64_t id = 0;
    int64_t hostId = 0;
    std::string name;
    Maybe<int64_t> timeNs;
    Maybe<int64_t> sentBytes, receivedBytes, errors, discards, linkDowns;
};

struct FailedAllocation {
    int64_t id = 0;
    int32_t rank = 0;
    int64_t refusedNs = 0;
    int64_t bytes = 0;  ///< asked for
    std::string call;   ///< cudaMalloc…
};

struct NvtxRange {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int32_t> threadId;
    int64_t startNs = 0;
    Maybe<int64_t> durNs;
    NvtxKind kind = NvtxKind::pushPop;
    Maybe<int32_t> domainId;
    int32_t nameId = 0;
    int32_t depth = 0;
    Maybe<int64_t> color;
    Maybe<int64_t> category;
    Maybe<int64_t> payload;
};

struct NcclCall {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int32_t> threadId;
    Maybe<int64_t> communicatorId;
    int64_t startNs = 0;
    int64_t durNs = 0;
    Op op = Op::unknown;
    Maybe<int64_t> seq;
    Maybe<int64_t> count;
    DataType dataType = DataType::unknown;
    Maybe<int64_t> bytes;
    Maybe<int32_t> reduceOp;
    Maybe<int32_t> peer;
    Maybe<int32_t> streamId;
    Maybe<int64_t> groupId;
    Maybe<int64_t> kernelId;
    Algorithm algorithm = Algorithm::unknown;
    Protocol protocol = Protocol::unknown;
    Maybe<int32_t> channels;
    int32_t evidence = 0;
};

struct RecorderCall {
    int64_t callId = 0;
    std::string state;  ///< scheduled | started | completed
    Maybe<int64_t> startedNs;
    Maybe<int64_t> completedNs;
    Maybe<int64_t> timeoutNs;
    Maybe<std::string> place;
};

struct RecorderGroup {
    int64_t communicatorId = 0;
    int32_t commRank = 0;
    int32_t rank = 0;
    Maybe<int64_t> enqueued;
    Maybe<int64_t> completed;
    Maybe<int32_t> fromStart;
};

struct ProxyOp {
    int64_t id = 0;
    int32_t rank = 0;
    Maybe<int64_t> communicatorId;
    Maybe<int64_t> callId;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int32_t channel = 0;
    int32_t peer = 0;
    bool isSend = false;
    int64_t bytes = 0;
    int64_t steps = 0;
    int64_t gpuWaitNs = 0;
    int64_t peerWaitNs = 0;
    int64_t networkWaitNs = 0;
    Maybe<int32_t> onBehalfOf;
};

/// Kernels of one key in one span of time (`run --light=kernels`).
struct KernelSummary {
    int64_t id = 0;
    int32_t rank = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    int32_t streamId = 0;
    int32_t nameId = 0;
    NcclKernel nccl = NcclKernel::no;
    int64_t gridBlocks = 0;
    int64_t blockThreads = 0;
    int64_t count = 0;
    int64_t totalNs = 0;
    int64_t tenthNs = 0;
    int64_t medianNs = 0;
    int64_t ninthNs = 0;
    int64_t longestNs = 0;
};

/// A span of time whose kernels were summarised.
struct KernelSpan {
    int64_t id = 0;
    int32_t rank = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    Maybe<int64_t> computeNs;  ///< none: of several devices
    Maybe<int64_t> ncclNs;
    Maybe<int64_t> busyNs;
    int64_t otherKinds = 0;
    int64_t otherCount = 0;
    int64_t otherNs = 0;
    int64_t lateCount = 0;
};

struct Counter {
    int64_t id = 0;
    int32_t rank = 0;
    int64_t timeNs = 0;
    int32_t nameId = 0;
    int64_t value = 0;
};

struct Collective {
    int64_t id = 0;
    int64_t communicatorId = 0;
    int64_t seq = 0;
    Op op = Op::unknown;
    MaybeNumber<int64_t> bytes;
    DataType dataType = DataType::unknown;
    Algorithm algorithm = Algorithm::unknown;
    Protocol protocol = Protocol::unknown;
    int32_t members = 0;
    MaybeNumber<int64_t> firstArrivalNs;
    MaybeNumber<int64_t> lastArrivalNs;
    MaybeNumber<int32_t> lastRank;
    MaybeNumber<int64_t> endNs;
    MaybeNumber<int64_t> transferNs;
    bool complete = false;
    MaybeNumber<int32_t> step;
};

struct CollectiveMember {
    int64_t collectiveId = 0;
    int32_t rank = 0;
    MaybeNumber<int64_t> callId;
    MaybeNumber<int64_t> kernelId;
    MaybeNumber<int64_t> arrivalNs;
    MaybeNumber<int64_t> endNs;
    MaybeNumber<int64_t> waitNs;
    MaybeNumber<int64_t> transferNs;
};

struct P2p {
    int64_t id = 0;
    int64_t communicatorId = 0;
    int32_t srcRank = 0;
    int32_t dstRank = 0;
    int64_t seq = 0;
    MaybeNumber<int64_t> bytes;
    MaybeNumber<int64_t> sendCallId;
    MaybeNumber<int64_t> recvCallId;
    MaybeNumber<int64_t> sendArrivalNs;
    MaybeNumber<int64_t> recvArrivalNs;
    MaybeNumber<int64_t> sendEndNs;
    MaybeNumber<int64_t> recvEndNs;
    MaybeNumber<int64_t> sendWaitNs;
    MaybeNumber<int64_t> recvWaitNs;
    MaybeNumber<int64_t> transferNs;
    bool complete = false;
};

struct Step {
    int32_t rank = 0;
    int32_t step = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    bool warmUp = false;
};

struct Loss {
    int64_t id = 0;  ///< given by the writer
    std::string kind;
    Severity severity = Severity::warning;
    Maybe<int32_t> rank;
    Maybe<std::string> source;
    int64_t count = 1;
    Maybe<std::string> file;
    Maybe<int64_t> offset;
    std::string message;
};

struct SourceStatus {
    int32_t rank = 0;
    std::string source;
    std::string state;
    Maybe<int64_t> code;
    Maybe<std::string> message;
};

struct Extent {
    std::string tableName;
    int32_t rank = 0;
    int64_t firstId = 0;
    int64_t lastId = 0;
    int64_t maxDurNs = 0;
};

/// In which file the events of a rank are, where that is not trace.db.
struct Shard {
    int32_t rank = 0;
    std::string file;
};

}  // namespace rankscope::store
