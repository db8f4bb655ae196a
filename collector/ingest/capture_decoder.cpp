// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/capture_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "collector/ingest/api_merge.h"
#include "collector/ingest/device_share.h"
#include "collector/ingest/nccl_join.h"
#include "collector/ingest/nvtx_pairing.h"
#include "collector/ingest/process_end.h"
#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {
namespace {

/// A thread per ring, in the order of the rings; rings whose ThreadRecord was lost are told by their records.
ThreadOfRing makeThreads(const RawCapture& raw, std::unordered_map<int64_t, int32_t>& threadOfTid,
                         RankRecording& recording) {
    std::map<uint32_t, LocalThread> byRing;
    for (const auto& record : raw.threads)
        byRing[record.threadIndex] = {record.tid, recording.strings[raw.text(record.name)]};
    const auto seen = [&byRing](const auto& list) {
        for (const auto& entry : list) byRing.try_emplace(entry.thread);
    };
    seen(raw.apiCalls);
    seen(raw.ncclCalls);
    seen(raw.nvtx);
    seen(raw.allocations);
    ThreadOfRing threads;
    for (const auto& [ring, thread] : byRing) {
        const auto index = static_cast<int32_t>(recording.threads.size());
        threads[ring] = index;
        if (thread.tid) threadOfTid.try_emplace(*thread.tid, index);
        recording.threads.push_back(thread);
    }
    return threads;
}

/// CUPTI stamps events on the device only when asked to; without a stamp, the time of the call that recorded the event
/// stands for it.
void timeCudaEvents(RankRecording& recording) {
    std::unordered_map<uint32_t, int64_t> unknown;
    for (const store::CudaEvent& event : recording.cudaEvents) {
        if (event.timeNs == 0 && event.correlationId) unknown.emplace(*event.correlationId, 0);
    }
    if (!unknown.empty()) {
        for (const store::ApiCall& call : recording.apiCalls) {
            if (!call.correlationId) continue;
            const auto place = unknown.find(*call.correlationId);
            if (place != unknown.end()) place->second = call.startNs;
        }
    }
    for (store::CudaEvent& event : recording.cudaEvents) {
        if (event.timeNs == 0 && event.correlationId) event.timeNs = unknown[*event.correlationId];
    }
    const size_t untimed =
        std::erase_if(recording.cudaEvents, [](const store::CudaEvent& event) { return event.timeNs == 0; });
    if (untimed > 0) {
        recording.losses.push_back({0,
                                    "untimed_event",
                                    store::Severity::info,
                                    {},
                                    "cupti",
                                    static_cast<int64_t>(untimed),
                                    {},
                                    {},
                                    "CUDA events without a time, whose call was not recorded, were left out"});
    }
}

/// Variables by which a launcher tells a process its place in the job, and paths of ours: the tables rank and process
/// have the former, and neither is a setting of the job.
bool isLauncherVariable(std::string_view key) {
    constexpr std::string_view kPrefix = "env.";
    if (!key.starts_with(kPrefix)) return false;
    key.remove_prefix(kPrefix.size());
    constexpr std::string_view kPrefixes[] = {"OMPI_",         "PMIX_",  "PMI_",  "SLURM_", "MASTER_",
                                              "TORCHELASTIC_", "GROUP_", "ROLE_", "LOCAL_", "RANKSCOPE_"};
    constexpr std::string_view kNames[] = {"RANK", "WORLD_SIZE", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                                           "NCCL_PROFILER_PLUGIN"};
    return std::ranges::any_of(kPrefixes, [key](std::string_view prefix) { return key.starts_with(prefix); }) ||
           std::ranges::find(kNames, key) != std::end(kNames);
}

const char* silentEndKind(SilentEnd end) {
    switch (end) {
        case SilentEnd::running:
            return "running";
        case SilentEnd::killed:
            return "vanished";
        case SilentEnd::unknown:
            break;
    }
    return "unknown";
}

const char* endKindOf(const RawCapture& raw, const CaptureChoice& choice) {
    if (!raw.processEnd && choice.wentOn) return silentEndKind(SilentEnd::running);
    if (!raw.processEnd) return silentEndKind(silentEndOf(choice.path, raw.header));
    switch (raw.processEnd->head.aux) {
        case 1:
            return "exit";
        case 2:
            return "_exit";
        case 3:
            return "signal";
        case 4:
            return "exec";
        default:
            return "exit";
    }
}

/// Without device activity (light mode): where its communicators are; -1: they do not say, or not the same.
int32_t deviceByCommunicators(const RawCapture& raw) {
    int32_t device = -1;
    for (const capture::CommunicatorRecord& communicator : raw.communicators) {
        if (communicator.device < 0) continue;
        if (device >= 0 && device != communicator.device) return -1;
        device = communicator.device;
    }
    return device;
}

/// Of CUpti_ActivityOverheadKind (CUPTI 13.0); empty: none that is known.
std::string_view overheadName(uint16_t kind) {
    constexpr std::string_view kOfCupti[] = {"",
                                             "buffer_flush",
                                             "instrumentation",
                                             "resource",
                                             "module_loading",
                                             "lazy_function_loading",
                                             "command_buffer_full",
                                             "buffer_request",
                                             "uvm_init"};
    if (kind == 1) return "driver_compiler";
    const size_t number = kind >= capture::kOverheadOfCupti ? kind - size_t{capture::kOverheadOfCupti} : 0;
    return number < std::size(kOfCupti) ? kOfCupti[number] : std::string_view{};
}

/// Of the device that the rank computes on: the one it was told, or its only one.
std::string busIdOf(const RankRecording& recording) {
    std::vector<std::string> known;
    for (const auto& [key, value] : recording.meta) {
        if (!key.starts_with("device.") || !key.ends_with(".bus_id")) continue;
        if (key == fmt::format("device.{}.bus_id", recording.device)) return value;
        known.push_back(value);
    }
    return recording.device < 0 && known.size() == 1 ? known.front() : std::string();
}

void addIdentity(const RawCapture& raw, const CaptureChoice& choice, RankRecording& recording) {
    const capture::FileHeader& header = raw.header;
    recording.rank = choice.rank;
    if (header.localRank >= 0) recording.localRank = header.localRank;
    recording.worldSize = header.worldSize;
    for (const auto& identity : raw.identities) {
        if (identity.worldSize > 0) recording.worldSize = identity.worldSize;
        if (identity.localRank >= 0 && (identity.device < 0 || identity.device == choice.device))
            recording.localRank = identity.localRank;
    }
    recording.device = choice.device < 0 && recording.streams.empty() ? deviceByCommunicators(raw) : choice.device;
    recording.hostName = header.host;
    recording.bootId = header.bootId;
    recording.startUnixNs = header.realtimeNs;
    recording.startUnixAtNs = header.processStartNs;
    recording.part = choice.part;

    store::Process& process = recording.process;
    process.pid = header.pid;
    process.parentPid = header.parentPid;
    process.attempt = header.attempt;
    process.executable = header.executable;
    process.startNs = header.processStartNs;
    process.endNs = raw.processEnd ? raw.processEnd->timeNs : std::max(raw.lastNs, header.processStartNs);
    process.endKind = endKindOf(raw, choice);
    if (raw.processEnd && raw.processEnd->code >= 0) process.endCode = raw.processEnd->code;
    process.identitySource = header.identitySource;
    process.captureFile = choice.name;
    recording.meta["tool_version"] = header.injectorVersion;
    recording.meta["overhead_ns"] = std::to_string(raw.overheadNs);
    for (const auto& [kind, ns] : raw.overheadNsByKind) {
        if (const std::string_view name = overheadName(kind); !name.empty())
            recording.meta[fmt::format("overhead.{}_ns", name)] = std::to_string(ns);
    }
    std::erase_if(recording.meta, [](const auto& entry) { return isLauncherVariable(entry.first); });
    recording.busId = busIdOf(recording);
    // Places of other devices on the bus are for who reads their health.
    std::erase_if(recording.meta, [](const auto& entry) { return entry.first.starts_with("device."); });
    // What recording cost in real time has no place in a trace of virtual time, which is the same on every machine.
    if (header.virtualGpu)
        std::erase_if(recording.meta, [](const auto& entry) { return entry.first.starts_with("overhead."); });
}

/// Whether calls were recorded by which a device gets something to do.
bool queuedDeviceWork(const RawCapture& raw) {
    using capture::CudaApi;
    const auto queues = [](const OnThread<capture::ApiCallRecord>& call) {
        const auto api = static_cast<CudaApi>(call.record.head.aux);
        return (api >= CudaApi::launchKernel && api <= CudaApi::graphLaunch) ||
               (api >= CudaApi::memcpy && api <= CudaApi::memcpy2DAsync);
    };
    return !raw.ncclCalls.empty() || std::ranges::any_of(raw.apiCalls, queues);
}

void addUndelivered(const RawCapture& raw, RankRecording& recording) {
    if (raw.processEnd) return;
    const bool isCuptiLive = std::ranges::any_of(recording.sources, [](const store::SourceStatus& status) {
        return status.source == "cupti" && status.state == "live";
    });
    std::string message;
    if (raw.cuptiHighWaterNs == 0) {
        if (!isCuptiLive || !queuedDeviceWork(raw)) return;
        message = fmt::format("device work of rank {}'s recording was not delivered at all", recording.rank);
    } else {
        if (raw.lastNs <= raw.cuptiHighWaterNs) return;
        message = fmt::format("device work of the last {:.3f} ms of rank {}'s recording was not delivered",
                              static_cast<double>(raw.lastNs - raw.cuptiHighWaterNs) / 1e6, recording.rank);
    }
    recording.losses.push_back({0,
                                "cupti_undelivered",
                                store::Severity::warning,
                                recording.rank,
                                "cupti",
                                1,
                                recording.process.captureFile,
                                {},
                                std::move(message)});
}

/// A process that left without a farewell or by a signal, or has not left: what it did last may be missing.
void addEnd(const RawCapture& raw, bool wentOn, RankRecording& recording) {
    const std::string& how = recording.process.endKind;
    const auto tell = [&recording](const char* kind, store::Severity severity, const std::string& what) {
        recording.losses.push_back({0,
                                    kind,
                                    severity,
                                    recording.rank,
                                    "injector",
                                    1,
                                    recording.process.captureFile,
                                    {},
                                    fmt::format("rank {} (pid {} on {}) {}", recording.rank, recording.process.pid,
                                                recording.hostName, what)});
    };
    if (how == "running") {
        recording.state = store::RankState::running;
        tell("running", wentOn ? store::Severity::info : store::Severity::warning,
             wentOn ? "went on when this was copied: of what came after nothing is known"
                    : "was still running when this was collected: collect again when the job has ended");
    } else if (how == "unknown") {
        recording.state = store::RankState::unknown;
        tell("unknown_end", store::Severity::warning,
             "has no end in its file, and nothing tells how it ended: the file was cut, or copied without its .ring "
             "file");
    } else if (how == "vanished") {
        recording.state = store::RankState::died;
        tell("died", store::Severity::error,
             "ended without a farewell (killed, out of memory, a watchdog's SIGABRT, power): its recording ends there");
    } else if (how == "signal") {
        recording.state = store::RankState::died;
        tell("died", store::Severity::error,
             fmt::format("died of signal {}: its recording ends there", recording.process.endCode.value_or(0)));
    }
    addUndelivered(raw, recording);
}

}  // namespace

RankRecording decodeCapture(const CaptureChoice& choice) {
    RawCapture raw = readRawCapture(choice.readFrom.empty() ? choice.path : choice.readFrom, choice.part);
    RankRecording recording = std::move(raw.recording);
    addIdentity(raw, choice, recording);
    std::unordered_map<int64_t, int32_t> threadOfTid;
    const ThreadOfRing threads = makeThreads(raw, threadOfTid, recording);
    mergeApiCalls(raw, threads, threadOfTid, recording);
    timeCudaEvents(recording);
    int64_t unpaired = 0;
    recording.nvtx = pairNvtx(raw, threads, unpaired);
    if (unpaired > 0) {
        recording.losses.push_back({0,
                                    "unpaired_range",
                                    store::Severity::info,
                                    {},
                                    "nvtx",
                                    unpaired,
                                    {},
                                    {},
                                    "NVTX ranges ended whose start was not recorded"});
    }
    joinNcclCalls(raw, threads, recording);
    addEnd(raw, choice.wentOn, recording);
    if (choice.device >= 0) keepDevice(raw, choice.device, recording);
    for (store::Loss& loss : recording.losses) {
        if (!loss.file) loss.file = choice.name;
    }
    return recording;
}

}  // namespace rankscope::collector
