// SPDX-License-Identifier: Apache-2.0
// The on-disk records of a capture file (rank*.cap) and the rules that keep them readable for years. FORMAT.md tells
// the same in prose.
//
// - Little-endian, plain structs, int64 nanoseconds on the clock named in FileHeader::clockKind.
// - Every record starts with a RecordHead and occupies `cells` cells of 32 bytes, so a reader can step over a record it
//   does not know.
// - Enums are never renumbered; a value a reader does not know is skipped and counted.
// - A field is appended by a new record type or a new format version, never squeezed into an old one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::capture {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kCellBytes = 32;
inline constexpr size_t kFileHeaderBytes = 4096;
inline constexpr size_t kBlockHeaderBytes = 64;
/// A block's payload never exceeds this; a larger claim in a file is corruption, not a reason to allocate.
inline constexpr uint32_t kMaxBlockPayloadBytes = 1u << 20;
inline constexpr char kFileMagic[8] = {'R', 'A', 'N', 'K', 'S', 'C', 'A', 'P'};
inline constexpr uint32_t kBlockMagic = 0x4b425352u;  // "RSBK"

/// What the timestamps of the file mean.
enum class ClockKind : uint8_t {
    unknown = 0,
    realtime = 1,  ///< CLOCK_REALTIME ns, the default time base of CUPTI
    cupti = 2,     ///< cuptiGetTimestamp ns (virtual runs: the virtual clock of this rank's host)
};

/// Which part of the injector wrote a record; one high-water mark and one loss count each.
enum class Source : uint8_t {
    none = 0,
    hooks = 1,       ///< NCCL and CUDA symbol hooks
    cupti = 2,       ///< CUPTI activity records
    nvtx = 3,        ///< NVTX injection
    ncclPlugin = 4,  ///< NCCL profiler plugin
    injector = 5,    ///< the injector about itself: metadata, status
    ncclTuner = 6,   ///< our NCCL tuner plugin: status only
};

enum class RecordType : uint8_t {
    padding = 0,
    string = 1,                ///< StringRecord: text of a string id
    metadata = 2,              ///< MetadataRecord: key and value
    thread = 3,                ///< ThreadRecord
    apiCall = 4,               ///< ApiCallRecord: a hooked CUDA runtime call
    ncclCall = 5,              ///< NcclCallRecord: a hooked NCCL call
    communicator = 6,          ///< CommunicatorRecord
    communicatorEnd = 7,       ///< CommunicatorEndRecord: destroy, abort, finalize
    nvtxPush = 8,              ///< NvtxRecord
    nvtxPop = 9,               ///< NvtxRecord
    nvtxMark = 10,             ///< NvtxRecord
    nvtxStart = 11,            ///< NvtxRecord, rangeId valid
    nvtxEnd = 12,              ///< NvtxRecord, rangeId valid
    ncclPayload = 13,          ///< NcclPayloadRecord: NCCL's own NVTX payload
    kernel = 14,               ///< KernelRecord
    memcpy = 15,               ///< MemcpyRecord
    memset = 16,               ///< MemsetRecord
    cuptiApi = 17,             ///< CuptiApiRecord
    synchronization = 18,      ///< SynchronizationRecord
    externalCorrelation = 19,  ///< ExternalCorrelationRecord
    stream = 20,               ///< StreamRecord: defines a stream index of this file
    device = 21,               ///< DeviceRecord
    cudaEvent = 22,            ///< CudaEventRecord: an event recorded or waited for
    graphTrace = 23,           ///< reserved
    pluginColl = 24,           ///< PluginCollRecord
    pluginP2p = 25,            ///< PluginCollRecord with peer
    pluginKernelChannel = 26,  ///< PluginChannelRecord
    loss = 27,                 ///< LossRecord
    status = 28,               ///< StatusRecord: a source came up, was refused, was shut down
    kernelGraph = 29,          ///< KernelGraphRecord: follows the kernel it belongs to
    processEnd = 30,           ///< ProcessEndRecord
    overhead = 31,             ///< OverheadRecord: time CUPTI or we took from the job
    allocation = 32,           ///< AllocationRecord
    ncclGroup = 33,            ///< NcclGroupRecord
    rankIdentity = 34,         ///< RankIdentityRecord: identity corrected after the file was opened
    pluginProxyOp = 35,        ///< PluginProxyOpRecord
    machineLink = 36,          ///< MachineLinkRecord
    fold = 37,                 ///< FoldRecord
    detailSince = 38,          ///< DetailSinceRecord
    openRanges = 39,           ///< OpenRangesRecord
    kernelKey = 40,            ///< KernelKeyRecord
    kernelSummary = 41,        ///< KernelSummaryRecord
    callGap = 42,              ///< CallGapRecord
};

enum class LossKind : uint8_t {
    unknown = 0,
    ringFull = 1,          ///< a thread's ring was full
    sizeCap = 2,           ///< --max-size reached; the first part is kept
    cuptiDropped = 3,      ///< cuptiActivityGetNumDroppedRecords
    cuptiUndelivered = 4,  ///< device work newer than the last delivered CUPTI buffer
    ioError = 5,           ///< a write failed (disk full, I/O error)
    truncatedText = 6,
    tooManyThreads = 7,
    captureRange = 8,  ///< outside the range the user asked for; not an error
    fork = 9,
    sourceRefused = 10,  ///< a source could not be enabled; StatusRecord tells the code
    poolExhausted = 11,  ///< more events open at once than there is room for
    virtualTimes = 12,  ///< the virtual GPUs went on without threads that they could not follow: their times may differ
    tooManyCommunicators = 13,  ///< calls whose communicator light mode no longer knew: no word of the plugin is theirs
    untimedKernels = 14,        ///< kernels that were to be summed up, without a begin or an end
    unknownStreams = 15,        ///< waits and events on a stream that CUPTI could not number
};

struct RecordHead {
    RecordType type;
    uint8_t cells;  ///< length of the record in 32-byte cells, at least 1
    uint16_t aux;   ///< meaning depends on the type
};
static_assert(sizeof(RecordHead) == 4);

/// First 4096 bytes of a file (the rest is zero). Texts are NUL-terminated UTF-8, cut to fit.
struct FileHeader {
    char magic[8];
    uint32_t formatVersion;
    uint32_t headerBytes;  ///< kFileHeaderBytes
    uint32_t endianMark;   ///< 0x01020304
    ClockKind clockKind;
    uint8_t virtualGpu;  ///< 1: recorded on the virtual GPUs
    uint8_t reserved0[2];
    int32_t pid;
    int32_t parentPid;
    int64_t processStartNs;   ///< clock of clockKind when the injector came alive
    int64_t realtimeNs;       ///< CLOCK_REALTIME at the same moment
    int64_t monotonicNs;      ///< CLOCK_MONOTONIC at the same moment
    int32_t rank;             ///< -1: unknown
    int32_t localRank;        ///< -1: unknown
    int32_t worldSize;        ///< -1: unknown
    int32_t attempt;          ///< elastic restart count, 0 for the first
    char identitySource[32];  ///< "torchrun", "openmpi", "pmix", "pmi", "slurm", "none"
    char host[256];           ///< RANKSCOPE_HOST or the host name
    char bootId[64];  ///< kernel boot id; two names with one boot id share a clock unless RANKSCOPE_HOST says otherwise
    char jobId[128];  ///< launcher's name of the job, or empty
    char executable[512];
    char injectorVersion[32];
    uint64_t headerChecksum;  ///< crc32c of all bytes before this field
};
static_assert(sizeof(FileHeader) <= kFileHeaderBytes);
static_assert(offsetof(FileHeader, pid) == 24 && offsetof(FileHeader, identitySource) == 72);

/// Precedes `payloadBytes` bytes of records, all of one thread.
struct BlockHeader {
    uint32_t magic;         ///< kBlockMagic
    uint32_t sequence;      ///< 0, 1, 2… in file order: a gap is a loss
    uint32_t payloadBytes;  ///< multiple of kCellBytes, at most kMaxBlockPayloadBytes
    uint32_t recordCount;
    uint32_t threadIndex;  ///< index of the ring, see ThreadRecord; kNoThread for records of no thread
    Source source;         ///< Source::none when mixed
    uint8_t reserved0[3];
    uint64_t lostRecords;  ///< records this thread could not store since the file was opened (cumulative)
    int64_t highWaterNs;   ///< newest timestamp in the block
    uint32_t payloadCrc;   ///< crc32c of the payload
    uint32_t reserved1;
    uint64_t ringEnd;  ///< of a .detail file: position in the thread's ring behind the block's records; else 0
    uint32_t reserved2;
    uint32_t headerCrc;  ///< crc32c of the bytes before this field
};
static_assert(sizeof(BlockHeader) == kBlockHeaderBytes);
inline constexpr uint32_t kNoThread = 0xffffffffu;

/// Ids of texts are local to the file; 0 is the empty text. A StringRecord may come after its first use.
using StringId = uint64_t;

/// aux: bytes of text (at most 8,128). The text follows the struct, padded with zeros to a whole cell.
struct StringRecord {
    RecordHead head;
    uint32_t fullBytes;  ///< length before it was cut
    StringId id;         ///< 64-bit hash of the full text, never 0
};
static_assert(sizeof(StringRecord) == 16);

/// aux: bytes of key. Key, then value, follow the struct without separators.
struct MetadataRecord {
    RecordHead head;
    uint32_t valueBytes;
};
static_assert(sizeof(MetadataRecord) == 8);

struct ThreadRecord {
    RecordHead head;
    uint32_t threadIndex;
    int32_t tid;
    uint32_t reserved;
    int64_t firstNs;
    StringId name;
};
static_assert(sizeof(ThreadRecord) == 32);

/// aux: CudaApi. `seq` orders calls of one thread that carry equal stamps.
struct ApiCallRecord {
    RecordHead head;
    uint32_t seq;
    int64_t startNs;
    int64_t endNs;
    uint64_t argument;  ///< bytes of a copy or allocation, stream handle of a launch or synchronisation
};
static_assert(sizeof(ApiCallRecord) == 32);

/// Hooked CUDA runtime calls, grouped by what they mean for a diagnosis.
enum class CudaApi : uint16_t {
    unknown = 0,
    launchKernel = 1,
    launchKernelExC = 2,
    launchCooperative = 3,
    graphLaunch = 4,
    malloc = 10,
    free = 11,
    mallocAsync = 12,
    freeAsync = 13,
    mallocHost = 14,
    freeHost = 15,
    hostAlloc = 16,
    mallocManaged = 17,
    memcpy = 20,
    memcpyAsync = 21,
    memset = 22,
    memsetAsync = 23,
    memcpyPeer = 24,
    memcpyPeerAsync = 25,
    memcpy2D = 26,
    memcpy2DAsync = 27,
    streamSynchronize = 30,
    eventSynchronize = 31,
    deviceSynchronize = 32,
    streamWaitEvent = 33,
    eventRecord = 34,
    graphInstantiate = 40,
    profilerStart = 41,
    profilerStop = 42,
};

enum class NcclOp : uint8_t {
    unknown = 0,
    allReduce = 1,
    allGather = 2,
    reduceScatter = 3,
    broadcast = 4,
    reduce = 5,
    allToAll = 6,
    gather = 7,
    scatter = 8,
    send = 9,
    recv = 10,
};

enum class Algorithm : uint8_t {
    unknown = 0,
    tree = 1,
    ring = 2,
    collnetDirect = 3,
    collnetChain = 4,
    nvls = 5,
    nvlsTree = 6,
    pat = 7
};
enum class Protocol : uint8_t { unknown = 0, ll = 1, ll128 = 2, simple = 3 };

/// Element types, numbered as ncclDataType_t (nccl.h 2.28): int8 0, uint8 1, int32 2, uint32 3, int64 4, uint64 5,
/// float16 6, float32 7, float64 8, bfloat16 9, float8e4m3 10, float8e5m2 11. 255: unknown.
using DataType = uint8_t;

/// aux: NcclOp. One call of a collective, send or recv, on the calling thread.
struct NcclCallRecord {
    RecordHead head;
    uint32_t seq;  ///< as ApiCallRecord
    int64_t startNs;
    int64_t endNs;
    uint64_t count;         ///< elements, as the caller passed them
    uint64_t callId;        ///< external correlation id (CUSTOM0) pushed around the call; unique in the process
    uint64_t stream;        ///< stream handle
    uint32_t communicator;  ///< CommunicatorRecord::index
    int32_t peerOrRoot;     ///< peer of send/recv, root of a rooted collective, else -1
    uint32_t groupId;       ///< 0: not inside ncclGroupStart/End; else NcclGroupRecord::groupId of this thread's group
    DataType dataType;
    uint8_t reduceOp;  ///< ncclRedOp_t value, 255 unknown
    uint8_t result;    ///< ncclResult_t
    uint8_t reserved;
};
static_assert(sizeof(NcclCallRecord) == 64);

/// aux: number of calls in the group, cut to 65,535. The outermost group only.
struct NcclGroupRecord {
    RecordHead head;
    uint32_t groupId;
    int64_t startNs;  ///< outermost ncclGroupStart
    int64_t endNs;    ///< return of the outermost ncclGroupEnd
    uint64_t
        callId;  ///< external correlation id pushed around ncclGroupEnd: its kernels belong to all calls of the group
};
static_assert(sizeof(NcclGroupRecord) == 32);

struct CommunicatorRecord {
    RecordHead head;  ///< aux: 1 hash is NCCL's commHash, 2 hash of the unique id and split colour, 0 unknown
    uint32_t
        index;  ///< 1, 2… in this process; names (handle, lifetime). Comes again when more is known: the last one holds
    uint64_t hash;  ///< identity across ranks
    uint64_t handle;
    int64_t timeNs;
    int32_t rank;  ///< rank in the communicator
    int32_t nRanks;
    int32_t device;   ///< CUDA ordinal
    uint32_t parent;  ///< index of the split's parent, 0 none
    int32_t splitColor;
    int32_t splitKey;
    StringId name;
};
static_assert(sizeof(CommunicatorRecord) == 64);

struct CommunicatorEndRecord {
    RecordHead head;  ///< aux: 1 destroy, 2 abort, 3 finalize
    uint32_t index;
    int64_t timeNs;
    uint64_t reserved[2];
};
static_assert(sizeof(CommunicatorEndRecord) == 32);

/// aux of push, mark, start: payload type as nvtxPayloadType_t, 0 none.
struct NvtxRecord {
    RecordHead head;
    uint32_t seq;
    int64_t timeNs;
    StringId name;     ///< 0 on pop and end
    uint64_t rangeId;  ///< start and end; else 0
    StringId domain;   ///< 0: the default domain
    uint64_t payload;  ///< 64-bit payload, 0 none
    uint32_t color;
    uint32_t category;
    uint64_t reserved;
};
static_assert(sizeof(NvtxRecord) == 64);

/// NCCL's own NVTX payload, next to the NvtxRecord with the same seq. aux: 1 on push, 2 on pop.
struct NcclPayloadRecord {
    RecordHead head;
    uint32_t seq;
    int64_t timeNs;
    uint64_t commHash;
    uint64_t bytes;  ///< one message: the per-rank chunk for all-gather and reduce-scatter
    uint64_t schemaId;
    int32_t peerOrRoot;  ///< -1 none
    int32_t rank;        ///< of an init call, else -1
    int32_t nRanks;      ///< of an init call, else -1
    int32_t device;      ///< of an init call, else -1
    uint32_t redop;
    uint32_t reserved;
};
static_assert(sizeof(NcclPayloadRecord) == 64);

/// aux: StreamRecord::index. A kernel of a CUDA graph, or one longer than 4.29 s, is followed by its KernelGraphRecord.
struct KernelRecord {
    RecordHead head;
    uint32_t correlationId;
    int64_t startNs;
    uint32_t durNs;  ///< low 32 bits; KernelGraphRecord::durHigh holds the rest when it does not fit
    uint32_t
        nameIdLow;  ///< low 32 bits of the name's StringId (two names that share them are a loss row, see FORMAT.md)
    uint32_t gridBlocks;  ///< gridX*gridY*gridZ, saturated
    uint16_t blockThreads;
    uint16_t flags;  ///< bit 0: incomplete (end unknown), bit 1: a KernelGraphRecord follows
};
static_assert(sizeof(KernelRecord) == 32);

struct KernelGraphRecord {
    RecordHead head;
    uint32_t durHigh;  ///< high 32 bits of the duration
    uint64_t graphNodeId;
    uint64_t graphId;
    uint64_t reserved;
};
static_assert(sizeof(KernelGraphRecord) == 32);

/// aux: StreamRecord::index.
struct MemcpyRecord {
    RecordHead head;
    uint32_t correlationId;
    int64_t startNs;
    uint32_t durNs;    ///< saturated
    uint8_t copyKind;  ///< CUpti_ActivityMemcpyKind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP…
    uint8_t srcKind;   ///< CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device
    uint8_t dstKind;
    uint8_t flags;  ///< bit 0: asynchronous
    uint64_t bytes;
};
static_assert(sizeof(MemcpyRecord) == 32);

/// aux: StreamRecord::index.
struct MemsetRecord {
    RecordHead head;
    uint32_t correlationId;
    int64_t startNs;
    uint32_t durNs;
    uint32_t value;
    uint64_t bytes;
};
static_assert(sizeof(MemsetRecord) == 32);

/// aux: cbid. A runtime or driver API call as CUPTI saw it.
struct CuptiApiRecord {
    RecordHead head;
    uint32_t correlationId;
    int64_t startNs;
    uint32_t durNsLow;  ///< durationNs()
    int32_t tid;
    uint32_t returnValue;
    uint16_t domain;     ///< 1 driver, 2 runtime (CUpti_CallbackDomain)
    uint16_t durNsHigh;  ///< 0 in files that cut durations at 4.29 s
};
static_assert(sizeof(CuptiApiRecord) == 32);

/// aux: StreamRecord::index, or 0xffff for a context-wide wait.
struct SynchronizationRecord {
    RecordHead head;
    uint32_t correlationId;
    int64_t startNs;
    uint32_t durNsLow;  ///< durationNs()
    uint32_t kind;      ///< CUpti_ActivitySynchronizationType: 1 event, 2 stream wait event, 3 stream, 4 context
    uint32_t eventId;
    uint16_t durNsHigh;  ///< 0 in files that cut durations at 4.29 s
    uint16_t reserved;
};
static_assert(sizeof(SynchronizationRecord) == 32);

/// Of a CuptiApiRecord or a SynchronizationRecord: what waits for the device may take as long as a step. Up to 78
/// hours.
template <typename Record>
constexpr int64_t durationNs(const Record& record) noexcept {
    return static_cast<int64_t>(uint64_t{record.durNsHigh} << 32 | record.durNsLow);
}

template <typename Record>
constexpr void setDurationNs(Record& record, uint64_t ns) noexcept {
    constexpr uint64_t kLongest = (uint64_t{1} << 48) - 1;
    if (ns > kLongest) ns = kLongest;
    record.durNsLow = static_cast<uint32_t>(ns);
    record.durNsHigh = static_cast<uint16_t>(ns >> 32);
}

struct ExternalCorrelationRecord {
    RecordHead head;
    uint32_t correlationId;
    uint64_t externalId;  ///< NcclCallRecord::callId or NcclGroupRecord::callId
    uint64_t reserved[2];
};
static_assert(sizeof(ExternalCorrelationRecord) == 32);

/// aux: index (0, 1…). Defines a (device, context, stream) of this file, before its first use.
struct StreamRecord {
    RecordHead head;
    int32_t device;  ///< CUDA ordinal
    uint32_t context;
    uint32_t stream;  ///< CUPTI stream id
    uint64_t handle;  ///< cudaStream_t where known, else 0
    int32_t priority;
    uint32_t flags;  ///< bit 0: default stream
};
static_assert(sizeof(StreamRecord) == 32);

struct DeviceRecord {
    RecordHead head;
    int32_t ordinal;
    uint64_t memoryBytes;
    StringId name;
    uint32_t multiprocessors;
    uint32_t computeCapability;  ///< major * 10 + minor
};
static_assert(sizeof(DeviceRecord) == 32);

enum class LinkKind : uint8_t { unknown = 0, nvlink = 1, pcie = 2, infiniband = 3, ethernet = 4 };
enum class LinkSource : uint8_t { unknown = 0, nvml = 1, sysfs = 2 };

/// What joins a device to others, or the host to other hosts, as the machine itself says.
struct MachineLinkRecord {
    RecordHead head;
    int32_t device;       ///< CUDA ordinal of the device it belongs to; -1: the host's
    StringId name;        ///< "NVLink", "PCIe", "mlx5_0/1", "eth0"
    int64_t bytesPerS;    ///< one direction, all `count` together; 0 unknown
    uint16_t count;       ///< NVLinks that are up, PCIe lanes, 1 for a port
    uint16_t generation;  ///< NVLink version or PCIe generation; 0 unknown
    LinkKind kind;
    LinkSource source;
    uint16_t reserved;
};
static_assert(sizeof(MachineLinkRecord) == 32);

/// aux: StreamRecord::index. An event recorded on a stream.
struct CudaEventRecord {
    RecordHead head;
    uint32_t correlationId;
    int64_t timeNs;
    uint32_t eventId;
    uint32_t reserved[3];
};
static_assert(sizeof(CudaEventRecord) == 32);

/// aux: CudaApi (malloc, free…). Of an allocation that was refused, the bytes that were asked for and no address.
struct AllocationRecord {
    RecordHead head;
    uint32_t seq;
    int64_t timeNs;
    uint64_t bytes;
    uint64_t address;
};
static_assert(sizeof(AllocationRecord) == 32);

/// A collective (pluginColl) or send/recv (pluginP2p) as NCCL's profiler plugin told it. aux: NcclOp.
struct PluginCollRecord {
    RecordHead head;
    uint32_t seq;
    int64_t startNs;  ///< startEvent: enqueued
    int64_t endNs;    ///< stopEvent: enqueued, not finished
    uint64_t commHash;
    uint64_t seqNumber;  ///< NCCL's own per communicator and function
    uint64_t count;
    uint8_t algorithm;  ///< Algorithm
    uint8_t protocol;   ///< Protocol
    uint8_t nChannels;
    uint8_t nWarps;
    DataType dataType;
    uint8_t pluginVersion;  ///< 3…6
    uint16_t reserved0;
    int32_t peerOrRoot;
    int32_t rank;  ///< rank in the communicator
};
static_assert(sizeof(PluginCollRecord) == 64);

/// In place of a channel: from the first begin of any channel of the operation to the last end.
inline constexpr uint16_t kAllChannels = 0xffff;

struct PluginChannelRecord {
    RecordHead head;  ///< aux: channel, or kAllChannels
    uint32_t seq;     ///< seq of the PluginCollRecord it belongs to
    int64_t startNs;  ///< GPU global timer
    int64_t endNs;
    uint64_t commHash;
};
static_assert(sizeof(PluginChannelRecord) == 32);

/// In place of a channel: all of them, their bytes and steps summed, of each time the longest. Of FoldRecords only.
inline constexpr uint8_t kEveryChannel = 255;

/// What NCCL's proxy thread did for one channel of a collective or message with one peer on another node (ProxyOp and
/// its ProxySteps). Written at its stop. aux: NcclOp of what it belongs to, 0 unknown. The three times are each the
/// time in which at least one step was in that state; steps overlap, so they may add up to more than the duration. They
/// are differences of one host's clock.
struct PluginProxyOpRecord {
    RecordHead head;
    uint32_t
        parentSeq;  ///< seq and start of the PluginCollRecord it belongs to; 0 none (PXN: it works for another process)
    int64_t startNs;  ///< the proxy begins with it
    int64_t endNs;
    uint64_t commHash;  ///< 0 unknown
    int64_t parentStartNs;
    uint64_t seqNumber;  ///< of the collective, NCCL's own; 0 for messages
    uint64_t bytes;      ///< sum of the steps' sizes
    int32_t peer;        ///< rank in the communicator at the other end
    uint32_t steps;
    int64_t gpuWaitNs;  ///< send: waiting for the GPU to fill the buffer; receive: waiting for the GPU to take the data
    int64_t peerWaitNs;  ///< send: waiting until the network takes the buffer (the receiver's credit); receive: flush
    int64_t networkWaitNs;  ///< send: on the network until it is done; receive: waiting for data
    uint8_t channel;
    uint8_t isSend;
    uint8_t pluginVersion;  ///< 3…6; version 3 counts each slice of a step
    uint8_t flags;          ///< bit 0: for another process (PXN)
    int32_t rank;           ///< rank in the communicator
};
static_assert(sizeof(PluginProxyOpRecord) == 96);

/// aux: LossKind.
struct LossRecord {
    RecordHead head;
    Source source;
    uint8_t reserved[3];
    int64_t firstNs;
    int64_t lastNs;
    uint64_t count;
};
static_assert(sizeof(LossRecord) == 32);

/// aux: 1 live, 2 refused, 3 taken by another tool, 4 shut down, 5 not asked for.
struct StatusRecord {
    RecordHead head;
    Source source;
    uint8_t reserved[3];
    int64_t timeNs;
    int64_t code;  ///< the library's own status (39, 999, 35…), 0 none
    StringId message;
};
static_assert(sizeof(StatusRecord) == 32);

/// aux: 1 exit or return from main, 2 _exit, 3 fatal signal, 4 exec, 5 that exec failed: the process goes on, and the
/// record before this one is void.
struct ProcessEndRecord {
    RecordHead head;
    int32_t code;  ///< exit status or signal number; -1 unknown
    int64_t timeNs;
    uint64_t reserved[2];
};
static_assert(sizeof(ProcessEndRecord) == 32);

/// Of CUpti_ActivityOverheadKind, whose kinds of CUPTI's own are 1 << 16, 2 << 16…: these as kOverheadOfCupti + 1, 2….
constexpr uint16_t kOverheadOfCupti = 0x100;

/// aux: CUpti_ActivityOverheadKind as above (in older files all of CUPTI's own are 0), or 0xfff0 + Source for our own
/// time.
struct OverheadRecord {
    RecordHead head;
    uint32_t reserved;
    int64_t startNs;
    int64_t durNs;
    uint64_t reserved1;
};
static_assert(sizeof(OverheadRecord) == 32);

/// The NCCL communicator of the whole job corrects what the environment said.
struct RankIdentityRecord {
    RecordHead head;
    int32_t rank;
    int32_t worldSize;
    int32_t localRank;
    int64_t timeNs;
    int32_t device;  ///< -1: whole process; else this device of a process that drives several
    uint32_t reserved;
};
static_assert(sizeof(RankIdentityRecord) == 32);

/// Of FoldRecord::head.aux: it builds on no record before it.
inline constexpr uint16_t kFoldStartsAnew = 1;

/// Calls and step marks of light mode (fold.h), `bytes` bytes behind the struct, padded with zeros to a whole cell.
struct FoldRecord {
    RecordHead head;  ///< aux: kFoldStartsAnew or 0
    uint32_t bytes;
    uint32_t sequence;  ///< 0, 1, 2… of those of the file
    uint32_t items;
    int64_t firstNs;  ///< earliest and latest start of an item
    int64_t lastNs;
};
static_assert(sizeof(FoldRecord) == 32);

/// First record of a .detail file: what began at sinceNs or later is in it and those behind it, what began before is in
/// FoldRecords.
struct DetailSinceRecord {
    RecordHead head;
    uint32_t index;  ///< of the file among those of the process: 0, 1, 2…
    int64_t sinceNs;
    uint64_t reserved[2];
};
static_assert(sizeof(DetailSinceRecord) == 32);

/// Ranges of a thread that were open when a .detail file began: behind its DetailSinceRecord, one for each such thread.
struct OpenRangesRecord {
    RecordHead head;
    uint32_t threadIndex;
    uint64_t kept;   ///< of the innermost 64, the innermost in bit 0: whether FoldRecords tell of it
    uint32_t depth;  ///< how many
    uint32_t reserved[3];
};
static_assert(sizeof(OpenRangesRecord) == 32);

/// Calls of light mode that no FoldRecord tells of: there was no room for them. aux: NcclOp of a message; 0 for
/// collectives of whatever kind. Those that come behind it on the communicator count on.
struct CallGapRecord {
    RecordHead head;
    uint32_t communicator;  ///< CommunicatorRecord::index
    int64_t fromNs;         ///< start of the first on the host
    int64_t untilNs;        ///< start of the last
    uint32_t calls;
    int32_t peer;  ///< of a message; else -1
};
static_assert(sizeof(CallGapRecord) == 32);

/// aux: StreamRecord::index. What a number of KernelSummaryRecords stands for from here on: kernels of one name and
/// launch shape on one stream.
struct KernelKeyRecord {
    RecordHead head;
    uint32_t number;  ///< 1, 2…; one that comes again has a new meaning
    StringId name;
    uint32_t gridBlocks;  ///< as KernelRecord
    uint16_t blockThreads;
    uint16_t flags;  ///< bit 0: NCCL's, by its name
    uint64_t reserved;
};
static_assert(sizeof(KernelKeyRecord) == 32);

/// In place of a device: the process used several.
inline constexpr uint16_t kSeveralDevices = 0xffff;

/// Kernels that began on the device from startNs to endNs, a step of the process as a rule, by key: `bytes` bytes of
/// `items` items behind the struct (kernel_summary.h), padded with zeros to a whole cell. aux: CUDA ordinal of the
/// device, or kSeveralDevices.
struct KernelSummaryRecord {
    RecordHead head;
    uint32_t bytes;
    uint32_t items;
    uint32_t otherKinds;  ///< keys without an item: there was no room for them
    int64_t startNs;
    int64_t endNs;
    int64_t computeNs;  ///< of that time, in which any kernel ran that is not NCCL's
    int64_t ncclNs;     ///< in which one of NCCL's did
    int64_t busyNs;     ///< in which any did
    int64_t otherNs;    ///< durations of the kernels without an item, added up
    uint32_t otherCount;
    uint32_t lateCount;  ///< of these, kernels of earlier times that came when those had been told
};
static_assert(sizeof(KernelSummaryRecord) == 72);

}  // namespace rankscope::capture
