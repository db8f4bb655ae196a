// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_rank.h"

#include <algorithm>
#include <limits>

#include "collector/importers/api_name.h"
#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/kineto_names.h"
#include "collector/importers/launch_calls.h"
#include "collector/importers/recording_rows.h"
#include "collector/importers/vendor_loss.h"
#include "collector/ingest/communication_kernels.h"

namespace rankscope::collector {

namespace {

constexpr std::string_view kGpuDomain = "gpu_user_annotation";

std::optional<uint32_t> saturate(std::optional<int64_t> value) {
    if (!value) return std::nullopt;
    return static_cast<uint32_t>(std::clamp<int64_t>(*value, 0, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void KinetoRank::add(const KinetoEvent& event) {
    if (event.category != KinetoCategory::metadata && !event.hasTime) return;
    if (event.platform != KinetoPlatform::unknown) m_platform = event.platform;
    switch (event.category) {
        case KinetoCategory::kernel:
            return addKernel(event);
        case KinetoCategory::memcpy:
            return addCopy(event);
        case KinetoCategory::memset:
            return addSet(event);
        case KinetoCategory::runtimeCall:
        case KinetoCategory::driverCall:
            return addCall(event);
        case KinetoCategory::synchronization:
            return addSynchronization(event);
        case KinetoCategory::annotation:
        case KinetoCategory::gpuAnnotation:
        case KinetoCategory::commParameters:
            return addAnnotation(event);
        case KinetoCategory::metadata:
            return addMetadata(event);
        case KinetoCategory::operation:
        case KinetoCategory::pythonFunction:
            return addOperation(event);
        case KinetoCategory::memory:
            return addMemory(event);
        case KinetoCategory::unknownGpu:
            ++m_unknownGpuEvents;
            return;
        case KinetoCategory::other:
            return;
    }
}

// ---- one event, one row

int32_t KinetoRank::streamOf(const KinetoEvent& event) {
    const int64_t device = event.device ? *event.device : event.pid.value_or(0);
    const int64_t context = event.context.value_or(0);
    const int64_t native = event.stream ? *event.stream : event.tid.value_or(0);
    const uint64_t key = (static_cast<uint64_t>(device) * 0x9e3779b97f4a7c15u) ^
                         (static_cast<uint64_t>(context) << 40) ^ static_cast<uint64_t>(native);
    const auto known = m_streams.find(key);
    if (known != m_streams.end()) return known->second;
    const auto index = static_cast<int32_t>(m_recording.streams.size());
    LocalStream stream;
    stream.device = static_cast<int32_t>(device);
    stream.context = context;
    stream.nativeId = native;
    m_recording.streams.push_back(stream);
    m_streams.emplace(key, index);
    return index;
}

int32_t KinetoRank::threadOf(std::optional<int64_t> nativeId, std::optional<int64_t> pid) {
    const int64_t tid = nativeId.value_or(-1);
    const auto known = m_threads.find(tid);
    if (known != m_threads.end()) return known->second;
    const auto index = static_cast<int32_t>(m_recording.threads.size());
    m_recording.threads.push_back({nativeId, ""});
    m_threads.emplace(tid, index);
    if (!m_pid) m_pid = pid;
    return index;
}

void KinetoRank::addKernel(const KinetoEvent& event) {
    store::Kernel kernel;
    kernel.streamId = streamOf(event);
    kernel.startNs = event.startNs;
    kernel.durNs = event.durNs;
    kernel.nameId = m_recording.strings.intern(event.name);
    kernel.correlationId = correlationOf(event.correlation);
    kernel.gridBlocks = saturate(event.gridBlocks);
    kernel.blockThreads = saturate(event.blockThreads);
    if (event.graphNode.value_or(0) != 0) kernel.graphNode = event.graphNode;

    const auto name = static_cast<size_t>(kernel.nameId);
    if (name >= m_nameKinds.size()) m_nameKinds.resize(name + 1, -1);
    if (m_nameKinds[name] < 0) {
        m_nameKinds[name] = isNcclKernelName(event.name) ? 1 : isCommunicationKernelName(event.name) ? 2 : 0;
    }
    if (m_nameKinds[name] > 0 || !event.collective.empty()) {
        kernel.nccl = event.collective.empty() ? store::NcclKernel::byName : store::NcclKernel::byCall;
        m_collectives.addKernel(event, m_recording.kernels.size(), m_nameKinds[name] == 1 || !event.collective.empty());
    }
    m_recording.kernels.push_back(kernel);
}

void KinetoRank::addCopy(const KinetoEvent& event) {
    const CopyText text = parseCopy(event.name, event.copyKind);
    store::Memcpy copy;
    copy.streamId = streamOf(event);
    copy.startNs = event.startNs;
    copy.durNs = event.durNs;
    copy.bytes = event.bytes.value_or(-1);  // ROCm tells it on the call: completeCopies()
    copy.kind = text.kind;
    copy.srcMemory = text.srcMemory;
    copy.dstMemory = text.dstMemory;
    copy.correlationId = correlationOf(event.correlation);
    m_recording.memcpys.push_back(copy);
}

void KinetoRank::addSet(const KinetoEvent& event) {
    store::Memset set;
    set.streamId = streamOf(event);
    set.startNs = event.startNs;
    set.durNs = event.durNs;
    set.bytes = event.bytes.value_or(-1);
    set.correlationId = correlationOf(event.correlation);
    m_recording.memsets.push_back(set);
}

void KinetoRank::addCall(const KinetoEvent& event) {
    // PyTorch built for ROCm writes calls of HIP as those of CUDA's runtime.
    if (m_platform == KinetoPlatform::unknown && event.name.starts_with("hip")) m_platform = KinetoPlatform::amd;
    store::ApiCall call;
    call.threadId = threadOf(event.tid, event.pid);
    call.startNs = event.startNs;
    call.durNs = event.durNs;
    call.nameId = m_recording.strings.intern(event.name);
    call.kind = apiKindFromName(event.name);
    call.source = store::ApiSource::imported;
    call.correlationId = correlationOf(event.correlation);
    call.argument = event.bytes;
    m_recording.apiCalls.push_back(call);
}

void KinetoRank::addSynchronization(const KinetoEvent& event) {
    store::Synchronization wait;
    wait.kind = parseSynchronizationKind(event.syncKind.empty() ? event.name : event.syncKind);
    // A wait for the whole context comes with stream -1, as unsigned or as signed number.
    const bool noStream = wait.kind == 4 || event.stream.value_or(0) == -1 ||
                          event.stream.value_or(0) == std::numeric_limits<uint32_t>::max();
    if (!noStream) wait.streamId = streamOf(event);
    // HolisticTraceAnalysis takes the unsigned number for a stream: `stats --tables hta` must know.
    if (event.stream.value_or(0) == std::numeric_limits<uint32_t>::max()) m_recording.meta["no_stream"] = "unsigned";
    wait.startNs = event.startNs;
    wait.durNs = event.durNs;
    wait.eventId = event.eventId;
    wait.correlationId = correlationOf(event.correlation);
    m_recording.synchronizations.push_back(wait);
}

void KinetoRank::addAnnotation(const KinetoEvent& event) {
    const bool onDevice = event.category == KinetoCategory::gpuAnnotation;
    if (event.category == KinetoCategory::commParameters)
        return m_collectives.addOperator(event, threadOf(event.tid, event.pid));
    if (const auto annotation = parseCollectiveAnnotation(event.name))
        m_collectives.addAnnotation(event, *annotation, onDevice ? streamOf(event) : threadOf(event.tid, event.pid),
                                    onDevice);
    store::NvtxRange range;
    range.startNs = event.startNs;
    range.durNs = event.durNs;
    range.nameId = m_recording.strings.intern(event.name);
    if (onDevice) {
        range.kind = store::NvtxKind::startEnd;
        range.domainId = m_recording.strings.intern(kGpuDomain);
    } else {
        range.kind = store::NvtxKind::pushPop;
        range.threadId = threadOf(event.tid, event.pid);
    }
    m_recording.nvtx.push_back(range);
}

void KinetoRank::addOperation(const KinetoEvent& event) {
    m_operations.add(event.name, event.tid.value_or(-1), event.startNs, event.durNs,
                     event.category == KinetoCategory::pythonFunction);
    if (!m_pid) m_pid = event.pid;
}

void KinetoRank::addMemory(const KinetoEvent& event) {
    if (event.name != "[memory]") return;
    const int64_t device = event.device.value_or(-1);
    const std::string where = event.deviceType == 0 ? "the CPU" : "device " + std::to_string(device);
    for (const auto& [what, bytes] :
         {std::pair("allocated", event.totalAllocated), std::pair("reserved", event.totalReserved)}) {
        // The CPU's allocator reserves nothing.
        if (!bytes || (event.deviceType == 0 && *bytes == 0)) continue;
        store::Counter counter;
        counter.timeNs = event.startNs;
        counter.nameId = m_recording.strings.intern("memory " + std::string(what) + " on " + where + " [bytes]");
        counter.value = *bytes;
        m_recording.counters.push_back(counter);
    }
}

void KinetoRank::addMetadata(const KinetoEvent& event) {
    if (event.name == "process_name" && event.pid) m_processNames[*event.pid] = std::string(event.argsName);
    if (event.name == "thread_name" && event.tid) {
        const auto thread = m_threads.find(*event.tid);
        if (thread != m_threads.end())
            m_recording.threads[static_cast<size_t>(thread->second)].name = std::string(event.argsName);
    }
}

// ---- the whole

void KinetoRank::tellPlatform(ImportLosses& losses) const {
    const char* devices = nullptr;
    switch (m_platform) {
        case KinetoPlatform::unknown:
            return;  // NVIDIA's, or nothing tells
        case KinetoPlatform::amd:
            devices = "AMD's, with HIP and RCCL";
            break;
        case KinetoPlatform::intel:
            devices = "Intel's (XPU)";
            break;
        case KinetoPlatform::mtia:
            devices = "Meta's (MTIA)";
            break;
        case KinetoPlatform::other:
            devices = "another vendor's";
            break;
    }
    tellVendor(devices, losses);
}

void KinetoRank::completeCopies(ImportLosses& losses) {
    const auto unknown = [](const auto& row) { return row.bytes < 0; };
    if (std::none_of(m_recording.memcpys.begin(), m_recording.memcpys.end(), unknown) &&
        std::none_of(m_recording.memsets.begin(), m_recording.memsets.end(), unknown)) {
        return;
    }
    std::unordered_map<uint32_t, int64_t> bytesOf;
    for (const store::ApiCall& call : m_recording.apiCalls) {
        if (call.correlationId && call.argument) bytesOf.emplace(*call.correlationId, *call.argument);
    }
    int64_t missing = 0;
    const auto complete = [&](auto& rows) {
        for (auto& row : rows) {
            if (row.bytes >= 0) continue;
            const auto found = row.correlationId ? bytesOf.find(*row.correlationId) : bytesOf.end();
            row.bytes = found == bytesOf.end() ? 0 : found->second;
            missing += found == bytesOf.end();
        }
    };
    complete(m_recording.memcpys);
    complete(m_recording.memsets);
    if (missing > 0)
        losses.add("source_absent", "info", std::nullopt,
                   "copies and sets without a size in the trace count as 0 bytes", missing);
}

RankRecording KinetoRank::finish(const KinetoHeader& header, std::optional<int32_t> fallbackRank,
                                 const ReadOptions& options, ImportLosses& losses) {
    tellPlatform(losses);
    completeCopies(losses);
    recogniseLaunches(m_recording);
    setDepths(m_recording);
    addKeptOperations(m_operations, options.allOperations, m_recording,
                      [this](int64_t tid) { return threadOf(tid, m_pid); });
    if (!options.allOperations && !m_recording.counters.empty()) {
        losses.add("source_absent", "info", std::nullopt,
                   "events of memory are left out: rankscope import --all-operations keeps them as counters",
                   static_cast<int64_t>(m_recording.counters.size()));
        m_recording.counters.clear();
    }
    std::optional<int64_t> rank = header.rank;
    if (!rank && fallbackRank) rank = *fallbackRank;
    m_collectives.finish(header, rank, m_recording);
    if (m_unknownGpuEvents > 0) {
        losses.add("source_absent", "info", std::nullopt,
                   "device events of a kind this version does not know are left out", m_unknownGpuEvents);
    }
    if (m_recording.kernels.empty()) {
        losses.add("source_absent", "warning", std::nullopt,
                   "the trace holds no GPU kernels; record with ProfilerActivity.CUDA");
    }
    for (const KinetoDevice& device : header.devices) {
        const bool used = std::any_of(m_recording.streams.begin(), m_recording.streams.end(),
                                      [&](const LocalStream& stream) { return stream.device == device.ordinal; });
        const bool isKnown = std::ranges::find(m_recording.devices, static_cast<int32_t>(device.ordinal),
                                               &LocalDevice::ordinal) != m_recording.devices.end();
        if (used && !isKnown) {  // merged files list the devices of all
            m_recording.devices.push_back({static_cast<int32_t>(device.ordinal), device.name, device.memoryBytes,
                                           device.multiprocessors, device.computeCapability});
        }
    }
    m_recording.hostName = header.hostName;
    m_recording.process.pid = m_pid.value_or(0);
    const auto name = m_processNames.find(m_recording.process.pid);
    if (name != m_processNames.end() && !name->second.empty()) m_recording.process.executable = name->second;
    if (!header.ncclVersion.empty()) m_recording.meta["nccl_version"] = header.ncclVersion;
    return std::move(m_recording);
}

}  // namespace rankscope::collector
