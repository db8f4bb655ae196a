// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/raw_capture.h"

#include <algorithm>
#include <initializer_list>

#include "collector/ingest/capture_loss.h"
#include "collector/ingest/machine_links.h"
#include "injector/capture_format/kernel_summary.h"
#include "injector/capture_format/reader.h"
#include "injector/capture_format/record_traits.h"

namespace rankscope::collector {
namespace {

using namespace capture;

constexpr uint16_t kWholeContext = 0xffff;
constexpr uint16_t kExecFailed = 5;  ///< ProcessEndRecord

/// Times beyond this are no times, and sums of two would not fit.
constexpr int64_t kLatestNs = int64_t{1} << 61;

bool plausible(std::initializer_list<int64_t> times) {
    return std::all_of(times.begin(), times.end(), [](int64_t ns) { return ns >= 0 && ns < kLatestNs; });
}

/// Nothing on the device begins so long before its process was recorded, however the clock was set meanwhile.
constexpr int64_t kEarliestNs = int64_t{3600} * 1'000'000'000;

/// 0 is CUPTI's "unknown": an activity that was not finished when it was delivered. When another client takes CUPTI
/// over it may hand over what the device's own timer said (CUPTI 13.0 on an H100: seconds since the device was
/// started).
bool isDeviceTime(int64_t ns, int64_t processStartNs) {
    return ns != 0 && plausible({ns}) && ns >= processStartNs - kEarliestNs;
}

/// What is most of a recording and tells nothing of which call is which.
bool isBulk(RecordType type) {
    return type == RecordType::cuptiApi || type == RecordType::apiCall || type == RecordType::allocation ||
           type == RecordType::memcpy || type == RecordType::memset || type == RecordType::synchronization ||
           type == RecordType::cudaEvent;
}

}  // namespace

bool timesPlausible(const RecordView& view, int64_t processStartNs) {
    const auto startAndEnd = [](const auto& record) {
        return plausible({record.startNs, record.endNs}) && record.startNs <= record.endNs;
    };
    switch (view.type()) {
        case RecordType::kernel:
            return isDeviceTime(view.as<KernelRecord>().startNs, processStartNs);
        case RecordType::memcpy:
            return isDeviceTime(view.as<MemcpyRecord>().startNs, processStartNs);
        case RecordType::memset:
            return isDeviceTime(view.as<MemsetRecord>().startNs, processStartNs);
        case RecordType::cuptiApi:
            return plausible({view.as<CuptiApiRecord>().startNs});
        case RecordType::synchronization:
            return plausible({view.as<SynchronizationRecord>().startNs});
        case RecordType::cudaEvent:
            return plausible({view.as<CudaEventRecord>().timeNs});
        case RecordType::apiCall:
            return startAndEnd(view.as<ApiCallRecord>());
        case RecordType::ncclCall:
            return startAndEnd(view.as<NcclCallRecord>());
        case RecordType::ncclGroup:
            return startAndEnd(view.as<NcclGroupRecord>());
        case RecordType::ncclPayload:
            return plausible({view.as<NcclPayloadRecord>().timeNs});
        case RecordType::allocation:
            return plausible({view.as<AllocationRecord>().timeNs});
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxMark:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
            return plausible({view.as<NvtxRecord>().timeNs});
        case RecordType::communicator:
            return plausible({view.as<CommunicatorRecord>().timeNs});
        case RecordType::communicatorEnd:
            return plausible({view.as<CommunicatorEndRecord>().timeNs});
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
            return plausible({view.as<PluginCollRecord>().startNs, view.as<PluginCollRecord>().endNs});
        case RecordType::pluginKernelChannel:
            return startAndEnd(view.as<PluginChannelRecord>()) && view.as<PluginChannelRecord>().startNs != 0;
        case RecordType::pluginProxyOp: {
            const auto record = view.as<PluginProxyOpRecord>();
            return startAndEnd(record) && plausible({record.gpuWaitNs, record.peerWaitNs, record.networkWaitNs,
                                                     static_cast<int64_t>(record.bytes)});
        }
        case RecordType::callGap: {
            const auto record = view.as<CallGapRecord>();
            return plausible({record.fromNs, record.untilNs}) && record.fromNs <= record.untilNs;
        }
        case RecordType::kernelSummary: {
            const auto record = view.as<KernelSummaryRecord>();
            return startAndEnd(record) && plausible({record.computeNs, record.ncclNs, record.busyNs, record.otherNs}) &&
                   std::max({record.computeNs, record.ncclNs, record.busyNs}) <= record.endNs - record.startNs;
        }
        case RecordType::processEnd:
            return plausible({view.as<ProcessEndRecord>().timeNs});
        case RecordType::overhead:
            return plausible({view.as<OverheadRecord>().startNs, view.as<OverheadRecord>().durNs});
        default:
            return true;
    }
}

bool isAskedFor(const RecordView& view, int64_t sinceNs) {
    // A call counts as part of the time in which its first kernel began; those of a group and a kernel's channels begin
    // one after the other, within this time: far more than launches of one call are apart, and cheap, since what is
    // kept too long is only read.
    constexpr int64_t kOneCallNs = int64_t{10} * 1'000'000'000;
    switch (view.type()) {
        case RecordType::kernel:
            return view.as<KernelRecord>().startNs >= sinceNs - kOneCallNs;
        case RecordType::pluginKernelChannel:
            return view.as<PluginChannelRecord>().startNs >= sinceNs - kOneCallNs;
        case RecordType::pluginProxyOp:
            return view.as<PluginProxyOpRecord>().startNs >= sinceNs;
        case RecordType::kernelSummary:
            return view.as<KernelSummaryRecord>().startNs >= sinceNs;
        default:
            return !isBulk(view.type()) || recordTimeNs(view.data) >= sinceNs;
    }
}

namespace {

/// What tells of something that happened at some time.
bool isEvent(RecordType type) {
    switch (type) {
        case RecordType::kernel:
        case RecordType::kernelSummary:
        case RecordType::ncclCall:
        case RecordType::ncclGroup:
        case RecordType::ncclPayload:
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxMark:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
        case RecordType::pluginKernelChannel:
        case RecordType::pluginProxyOp:
            return true;
        default:
            return isBulk(type);
    }
}

class RawReader {
  public:
    RawReader(const std::string& path, const std::optional<TimeSpan>& part) : m_reader(path), m_part(part) {
        m_raw.header = m_reader.header();
        if (m_part) m_reader.leaveOutRings();  // its process may live
    }
    RawCapture read() &&;

  private:
    bool isWanted(const RecordView& view) const;
    void take(const RecordView& view);
    void takeKernel(const KernelRecord& record);
    void takeGraph(const KernelGraphRecord& record);
    void takeSummary(const RecordView& view);
    void takeStream(const StreamRecord& record);
    void addLoss(store::Loss loss);
    int32_t streamOf(uint16_t index);
    void resolveNames();

    CaptureReader m_reader;
    std::optional<TimeSpan> m_part;
    RawCapture m_raw;
    std::map<uint16_t, int32_t> m_streams;
    std::unordered_map<uint32_t, int32_t> m_textByLow;           // kernels name their text by the low half of its id
    std::unordered_map<uint32_t, KernelKeyRecord> m_kernelKeys;  // by number
    std::vector<StringId> m_summaryNames;                        // of the summaries, as they were read
    std::vector<DeviceRecord> m_devices;
    std::vector<MachineLinkRecord> m_links;
    std::vector<StatusRecord> m_statuses;
    bool m_graphFollows = false;
    int64_t m_impossible = 0;
};

int32_t RawReader::streamOf(uint16_t index) {
    const auto [place, isNew] = m_streams.try_emplace(index, static_cast<int32_t>(m_raw.recording.streams.size()));
    // Its definition was lost: the index still tells it from other streams.
    if (isNew) m_raw.recording.streams.push_back({0, 0, index, {}, {}});
    return place->second;
}

void RawReader::takeStream(const StreamRecord& record) {
    LocalStream& stream = m_raw.recording.streams[static_cast<size_t>(streamOf(record.head.aux))];
    stream = {record.device, record.context, record.stream, {}, record.priority};
    if (record.handle != 0) stream.handle = static_cast<int64_t>(record.handle);
}

void RawReader::takeKernel(const KernelRecord& record) {
    store::Kernel kernel;
    kernel.streamId = streamOf(record.head.aux);
    kernel.startNs = record.startNs;
    kernel.durNs = record.durNs;
    kernel.nameId = static_cast<int32_t>(record.nameIdLow);  // resolveNames() makes it a string
    if (record.correlationId != 0) kernel.correlationId = record.correlationId;
    kernel.gridBlocks = record.gridBlocks;
    kernel.blockThreads = record.blockThreads;
    m_raw.recording.kernels.push_back(kernel);
    m_graphFollows = (record.flags & 2) != 0;
}

void RawReader::takeGraph(const KernelGraphRecord& record) {
    if (!m_graphFollows || m_raw.recording.kernels.empty()) return;
    store::Kernel& kernel = m_raw.recording.kernels.back();
    const int64_t longerNs = static_cast<int64_t>(record.durHigh) << 32;
    if (!plausible({longerNs})) {
        ++m_impossible;
        return;
    }
    kernel.durNs += longerNs;
    if (record.graphNodeId != 0) kernel.graphNode = static_cast<int64_t>(record.graphNodeId);
    m_graphFollows = false;
}

/// Items whose key is not known, since its block was damaged, are counted as what they are: kernels without a row.
void RawReader::takeSummary(const RecordView& view) {
    const auto record = view.as<KernelSummaryRecord>();
    store::KernelSpan span;
    span.startNs = record.startNs;
    span.durNs = record.endNs - record.startNs;
    if (record.head.aux != kSeveralDevices) {
        span.computeNs = record.computeNs;
        span.ncclNs = record.ncclNs;
        span.busyNs = record.busyNs;
    }
    span.otherKinds = record.otherKinds;
    span.otherCount = record.otherCount;
    span.otherNs = record.otherNs;
    span.lateCount = record.lateCount;
    const uint8_t* at = view.data + sizeof record;
    const uint8_t* const end = at + record.bytes;
    KernelItem item;
    for (uint32_t i = 0, previous = 0; i < record.items; ++i, previous = item.number) {
        at = takeKernelItem(at, end, previous, item);
        if (at == nullptr) {
            addLoss({0,
                     "malformed_record",
                     store::Severity::warning,
                     {},
                     "cupti",
                     1,
                     {},
                     static_cast<int64_t>(view.fileOffset),
                     "a summary of kernels contradicts itself: what stands behind is left out"});
            break;
        }
        const auto key = m_kernelKeys.find(item.number);
        if (key == m_kernelKeys.end()) {
            ++span.otherKinds;
            span.otherCount += item.count;
            if (__builtin_add_overflow(span.otherNs, item.totalNs, &span.otherNs)) span.otherNs = kLatestNs;
            continue;
        }
        store::KernelSummary row;
        row.startNs = span.startNs;
        row.durNs = span.durNs;
        row.streamId = streamOf(key->second.head.aux);
        row.nccl = (key->second.flags & 1) != 0 ? store::NcclKernel::byName : store::NcclKernel::no;
        row.gridBlocks = key->second.gridBlocks;
        row.blockThreads = key->second.blockThreads;
        row.count = item.count;
        row.totalNs = item.totalNs;
        row.tenthNs = item.tenthNs;
        row.medianNs = item.medianNs;
        row.ninthNs = item.ninthNs;
        row.longestNs = item.longestNs;
        m_raw.recording.kernelSummaries.push_back(row);
        m_summaryNames.push_back(key->second.name);
    }
    m_raw.recording.kernelSpans.push_back(span);
}

/// A loss that goes on, a full disk say, is told again and again; for the reader of a report it is one.
void RawReader::addLoss(store::Loss loss) {
    for (store::Loss& known : m_raw.recording.losses) {
        if (known.kind != loss.kind || known.source != loss.source) continue;
        if (__builtin_add_overflow(known.count, loss.count, &known.count)) known.count = INT64_MAX;
        return;
    }
    m_raw.recording.losses.push_back(std::move(loss));
}

/// Nobody numbers the bulk. Of the others those before the part are dropped once they are numbered (recent_part.h).
bool RawReader::isWanted(const RecordView& view) const {
    if (!isEvent(view.type())) return true;
    const int64_t timeNs = recordTimeNs(view.data);
    return timeNs <= m_part->untilNs && (timeNs >= m_part->sinceNs || !isBulk(view.type()));
}

void RawReader::take(const RecordView& view) {
    if (!timesPlausible(view, m_raw.header.processStartNs)) {
        ++m_impossible;
        return;
    }
    RankRecording& recording = m_raw.recording;
    if (view.type() != RecordType::loss && view.type() != RecordType::status)
        m_raw.lastNs = std::max(m_raw.lastNs, recordTimeNs(view.data));
    if (m_part && !isWanted(view)) return;
    const auto onThread = [&view](auto& list, auto record) { list.push_back({view.threadIndex, record}); };
    switch (view.type()) {
        case RecordType::kernel:
            takeKernel(view.as<KernelRecord>());
            break;
        case RecordType::callGap:
            m_raw.callGaps.push_back(view.as<CallGapRecord>());
            break;
        case RecordType::kernelKey:
            m_kernelKeys[view.as<KernelKeyRecord>().number] = view.as<KernelKeyRecord>();
            break;
        case RecordType::kernelSummary:
            takeSummary(view);
            break;
        case RecordType::kernelGraph:
            takeGraph(view.as<KernelGraphRecord>());
            break;
        case RecordType::cuptiApi:
            m_raw.cuptiApis.push_back(view.as<CuptiApiRecord>());
            break;
        case RecordType::externalCorrelation:
            m_raw.externalCorrelations.push_back(view.as<ExternalCorrelationRecord>());
            break;
        case RecordType::apiCall:
            onThread(m_raw.apiCalls, view.as<ApiCallRecord>());
            break;
        case RecordType::ncclCall:
            onThread(m_raw.ncclCalls, view.as<NcclCallRecord>());
            break;
        case RecordType::ncclGroup:
            onThread(m_raw.ncclGroups, view.as<NcclGroupRecord>());
            break;
        case RecordType::ncclPayload:
            onThread(m_raw.ncclPayloads, view.as<NcclPayloadRecord>());
            break;
        case RecordType::allocation:
            onThread(m_raw.allocations, view.as<AllocationRecord>());
            break;
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxMark:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
            onThread(m_raw.nvtx, view.as<NvtxRecord>());
            break;
        case RecordType::memcpy: {
            const auto record = view.as<MemcpyRecord>();
            recording.memcpys.push_back({0, 0, streamOf(record.head.aux), record.startNs, record.durNs,
                                         static_cast<int64_t>(record.bytes), record.copyKind, record.srcKind,
                                         record.dstKind, record.correlationId});
            break;
        }
        case RecordType::memset: {
            const auto record = view.as<MemsetRecord>();
            recording.memsets.push_back({0, 0, streamOf(record.head.aux), record.startNs, record.durNs,
                                         static_cast<int64_t>(record.bytes), record.correlationId});
            break;
        }
        case RecordType::synchronization: {
            const auto record = view.as<SynchronizationRecord>();
            store::Synchronization row{0,
                                       0,
                                       {},
                                       record.startNs,
                                       capture::durationNs(record),
                                       static_cast<int32_t>(record.kind),
                                       record.eventId,
                                       record.correlationId};
            if (record.head.aux != kWholeContext) row.streamId = streamOf(record.head.aux);
            recording.synchronizations.push_back(row);
            break;
        }
        case RecordType::cudaEvent: {
            const auto record = view.as<CudaEventRecord>();
            recording.cudaEvents.push_back(
                {0, 0, streamOf(record.head.aux), record.timeNs, record.eventId, record.correlationId});
            break;
        }
        case RecordType::string: {
            const auto record = view.as<StringRecord>();
            const int32_t id = recording.strings.intern(view.text());
            m_raw.textIds[record.id] = id;
            m_textByLow[static_cast<uint32_t>(record.id)] = id;
            break;
        }
        case RecordType::metadata:
            recording.meta.emplace(view.key(), view.value());
            break;
        case RecordType::stream:
            takeStream(view.as<StreamRecord>());
            break;
        case RecordType::device:
            m_devices.push_back(view.as<DeviceRecord>());
            break;
        case RecordType::machineLink:
            m_links.push_back(view.as<MachineLinkRecord>());
            break;
        case RecordType::thread:
            m_raw.threads.push_back(view.as<ThreadRecord>());
            break;
        case RecordType::communicator:
            m_raw.communicators.push_back(view.as<CommunicatorRecord>());
            break;
        case RecordType::communicatorEnd:
            m_raw.communicatorEnds.push_back(view.as<CommunicatorEndRecord>());
            break;
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
            m_raw.pluginCalls.push_back(view.as<PluginCollRecord>());
            break;
        case RecordType::pluginKernelChannel:
            m_raw.pluginChannels.push_back(view.as<PluginChannelRecord>());
            break;
        case RecordType::pluginProxyOp:
            m_raw.proxyOps.push_back(view.as<PluginProxyOpRecord>());
            break;
        case RecordType::rankIdentity:
            m_raw.identities.push_back(view.as<RankIdentityRecord>());
            break;
        case RecordType::processEnd:
            m_raw.processEnd = view.as<ProcessEndRecord>();
            if (m_raw.processEnd->head.aux == kExecFailed) m_raw.processEnd.reset();
            break;
        case RecordType::overhead:
            m_raw.overheadNs = std::min(kLatestNs, m_raw.overheadNs + view.as<OverheadRecord>().durNs);
            if (const int64_t durNs = view.as<OverheadRecord>().durNs; durNs > 0) {
                int64_t& sumNs = m_raw.overheadNsByKind[view.as<OverheadRecord>().head.aux];
                sumNs = std::min(kLatestNs, sumNs + durNs);
            }
            break;
        case RecordType::loss:
            addLoss(lossOf(view.as<LossRecord>(), view.fileOffset));
            break;
        case RecordType::status:
            m_statuses.push_back(view.as<StatusRecord>());
            break;
        default:
            break;
    }
    if (view.type() != RecordType::kernel) m_graphFollows = false;
}

/// Strings may come after their first use, so names are looked up at the end.
void RawReader::resolveNames() {
    RankRecording& recording = m_raw.recording;
    const int32_t unnamed = recording.strings.intern("(name not recorded)");
    for (store::Kernel& kernel : recording.kernels) {
        const auto place = m_textByLow.find(static_cast<uint32_t>(kernel.nameId));
        kernel.nameId = place == m_textByLow.end() ? unnamed : place->second;
    }
    for (size_t i = 0; i < m_summaryNames.size(); ++i) {
        const auto place = m_raw.textIds.find(m_summaryNames[i]);
        recording.kernelSummaries[i].nameId = place == m_raw.textIds.end() ? unnamed : place->second;
    }
    for (const DeviceRecord& device : m_devices) {
        recording.devices.push_back({device.ordinal, recording.strings[m_raw.text(device.name)],
                                     static_cast<int64_t>(device.memoryBytes), device.multiprocessors,
                                     device.computeCapability});
    }
    for (const MachineLinkRecord& link : m_links) {
        if (auto local = machineLinkOf(link, recording.strings[m_raw.text(link.name)]))
            recording.machineLinks.push_back(std::move(*local));
    }
    for (const StatusRecord& status : m_statuses)
        recording.sources.push_back(sourceStatusOf(status, recording.strings[m_raw.text(status.message)]));
}

RawCapture RawReader::read() && {
    m_raw.recording.strings.intern("");
    while (const RecordView* view = m_reader.next()) take(*view);
    resolveNames();
    for (const ReaderLoss& loss : m_reader.losses()) m_raw.recording.losses.push_back(lossOf(loss));
    if (m_impossible > 0) {
        m_raw.recording.losses.push_back(
            {0,
             "bad_record",
             store::Severity::warning,
             {},
             "collector",
             m_impossible,
             {},
             {},
             "records with impossible times were left out: the file is damaged, or CUPTI delivered unfinished work"});
    }
    m_raw.cuptiHighWaterNs = m_reader.highWaterNs(Source::cupti);
    return std::move(m_raw);
}

}  // namespace

int32_t RawCapture::text(capture::StringId id) const {
    const auto place = textIds.find(id);
    return place == textIds.end() ? 0 : place->second;
}

RawCapture readRawCapture(const std::string& path, const std::optional<TimeSpan>& part) {
    return RawReader(path, part).read();
}

}  // namespace rankscope::collector
