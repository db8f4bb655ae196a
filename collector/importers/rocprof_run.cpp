// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/rocprof_run.h"

#include <algorithm>
#include <limits>

#include "collector/importers/import_error.h"
#include "collector/importers/most_devices.h"
#include "collector/importers/recording_rows.h"
#include "collector/importers/vendor_loss.h"

namespace rankscope::collector {

namespace {

/// 73 years, so that sums of a few such times do not overflow.
constexpr int64_t kMostRocprofNs = int64_t{1} << 61;

bool isTime(std::optional<int64_t> timeNs) {
    return timeNs && *timeNs >= -kMostRocprofNs && *timeNs <= kMostRocprofNs;
}

/// Product of three sizes; empty where one is missing, as large as can be where it is larger.
std::optional<uint32_t> productOfSizes(const std::array<std::optional<int64_t>, 3>& sizes) {
    uint64_t all = 1;
    for (const auto& size : sizes) {
        if (!size || *size < 0 || *size > UINT32_MAX) return std::nullopt;
        all = std::min<uint64_t>(all * static_cast<uint64_t>(*size), UINT32_MAX);
    }
    return static_cast<uint32_t>(all);
}

/// Workgroups of a dispatch, whose grid ROCm counts in work-items.
std::optional<uint32_t> groupsOf(const RocprofDispatch& dispatch) {
    std::array<std::optional<int64_t>, 3> groups;
    for (size_t i = 0; i < groups.size(); ++i) {
        const auto &grid = dispatch.grid[i], &size = dispatch.workgroup[i];
        if (!grid || !size || *grid < 0 || *size < 1) return std::nullopt;
        groups[i] = *grid / *size + (*grid % *size != 0);
    }
    return productOfSizes(groups);
}

/// CUpti_ActivityMemcpyKind of a copy between two agents.
int32_t copyBetween(const RocprofAgent* from, const RocprofAgent* to, bool isSame) {
    constexpr int32_t kUnknown = 0, kHostToDevice = 1, kDeviceToHost = 2, kOnDevice = 8, kHostToHost = 9, kPeer = 10;
    if (from == nullptr || to == nullptr) return kUnknown;
    if (from->isGpu && to->isGpu) return isSame ? kOnDevice : kPeer;
    if (from->isGpu) return kDeviceToHost;
    return to->isGpu ? kHostToDevice : kHostToHost;
}

/// Calls of RCCL that move no data: about communicators, versions, errors, memory and algorithms.
bool isRcclService(std::string_view name) {
    for (const std::string_view start :
         {"ncclComm", "ncclGet", "ncclRedOp", "ncclMem", "ncclGroup", "mscclLoad", "mscclUnload"})
        if (name.starts_with(start)) return true;
    return false;
}

}  // namespace

std::optional<DeviceRow> RocprofRun::rowOf(const RocprofTimes& times, int64_t stream) {
    if (!isTime(times.startNs) || !isTime(times.endNs) || *times.endNs < *times.startNs ||
        *times.endNs - *times.startNs > kMostRocprofNs) {
        m_losses.add("bad_block", "warning", std::nullopt,
                     "records without a start, with an end before it, or with a time that cannot be, are left out");
        return std::nullopt;
    }
    return DeviceRow{*times.startNs, *times.endNs - *times.startNs, 0, stream, times.correlation};
}

DeviceRank* RocprofRun::rankOf(Process& process, int64_t agent) {
    const auto rank = process.m_ranks.find(agent);
    if (rank != process.m_ranks.end()) return rank->second.get();
    if (std::ssize(process.m_ranks) >= kMostDevices) {
        m_losses.add("bad_block", "warning", std::nullopt,
                     "kernels and copies are left out that are on more devices than a host has");
        return nullptr;
    }
    const auto known = process.agents.find(agent);
    std::unique_ptr<DeviceRank>& made = process.m_ranks[agent];
    made = std::make_unique<DeviceRank>(
        [this](int64_t name) { return std::string_view(m_names[static_cast<int32_t>(name)]); },
        known == process.agents.end() ? 0 : known->second.ordinal);
    return made.get();
}

void RocprofRun::addKernel(Process& process, int64_t agent, int64_t stream, const RocprofTimes& times,
                           std::string_view name, const RocprofDispatch& dispatch) {
    const auto row = rowOf(times, stream);
    if (!row) return;
    const auto known = process.agents.find(agent);
    if (known != process.agents.end() && !known->second.isGpu) {
        m_losses.add("bad_block", "warning", std::nullopt, "kernels on an agent that is no GPU are left out");
        return;
    }
    store::Kernel kernel;
    kernel.gridBlocks = groupsOf(dispatch);
    kernel.blockThreads = productOfSizes(dispatch.workgroup);
    if (DeviceRank* const rank = rankOf(process, agent)) rank->addKernel(*row, m_names.intern(name), kernel);
}

void RocprofRun::addCopy(Process& process, int64_t from, int64_t to, int64_t stream, const RocprofTimes& times,
                         int64_t bytes) {
    const auto row = rowOf(times, stream);
    if (!row) return;
    const auto agentOf = [&process](int64_t id) {
        const auto known = process.agents.find(id);
        return known == process.agents.end() ? nullptr : &known->second;
    };
    const RocprofAgent *source = agentOf(from), *target = agentOf(to);
    store::Memcpy copy;
    copy.bytes = std::max<int64_t>(0, bytes);
    copy.kind = copyBetween(source, target, from == to);
    const bool isSources = source != nullptr && source->isGpu;
    if (!isSources && (target == nullptr || !target->isGpu)) {
        m_losses.add("source_absent", "info", std::nullopt,
                     "copies are left out that are from no GPU and to none that the file names");
        return;
    }
    if (DeviceRank* const rank = rankOf(process, isSources ? from : to)) rank->addCopy(*row, copy);
}

void RocprofRun::addCall(Process& process, std::string_view domain, int64_t tid, const RocprofTimes& times,
                         std::string_view name, std::optional<int64_t> bytes) {
    const auto row = rowOf(times, 0);
    if (!row) return;
    if (domain.starts_with("RCCL")) {
        const auto told = parseNcclRange(name);
        if (!told) {
            if (!isRcclService(name))
                m_losses.add("source_absent", "info", std::nullopt,
                             "calls of RCCL are left out that are none of the operations known here");
            return;
        }
        NcclRange range{told->first, told->second, 0, row->startNs, row->startNs + row->durNs, {}};
        range.payload.bytes = bytes;
        process.m_collectives.push_back({tid, range});
        return;
    }
    if (!domain.starts_with("HIP_RUNTIME")) {
        m_losses.add("source_absent", "info", std::nullopt,
                     "calls of ROCm's other libraries (HSA, HIP's compiler, decoders) are left out");
        return;
    }
    store::ApiCall call;
    call.startNs = row->startNs;
    call.durNs = row->durNs;
    call.correlationId = correlationOf(times.correlation);
    process.m_calls.push_back({tid, m_names.intern(name), call});
}

void RocprofRun::addMarker(Process& process, std::string_view domain, int64_t tid, const RocprofTimes& times,
                           std::string_view operation, std::string_view message) {
    const auto row = rowOf(times, 0);
    // Calls that make no range; the end of one is told with its begin.
    if (!row || !domain.starts_with("MARKER_CORE") || operation == "roctxGetThreadId" || operation == "roctxRangePop" ||
        operation == "roctxRangeStop")
        return;
    store::NvtxRange range;
    range.startNs = row->startNs;
    range.durNs = row->durNs;
    range.kind = operation.starts_with("roctxMark") ? store::NvtxKind::mark
                 : operation.starts_with("roctxProcessRange") || operation.starts_with("roctxRangeStart")
                     ? store::NvtxKind::startEnd
                     : store::NvtxKind::pushPop;
    process.m_markers.push_back({tid, domain == "MARKER_CORE_RANGE_API", std::string(message), range});
}

/// Gives what the host did to the ranks of its process: a call to that whose work it caused, else to the first.
void RocprofRun::joinHost(Process& process) {
    DeviceRank& first = *process.m_ranks.begin()->second;
    std::map<uint32_t, DeviceRank*> rankOf;
    const auto learn = [&rankOf](const auto& rows, DeviceRank& rank) {
        for (const auto& row : rows)
            if (row.correlationId) rankOf.emplace(*row.correlationId, &rank);
    };
    if (process.m_ranks.size() > 1)
        for (const auto& [agent, rank] : process.m_ranks) {
            learn(rank->recording().kernels, *rank);
            learn(rank->recording().memcpys, *rank);
        }
    for (const Process::HostCall& call : process.m_calls) {
        const auto own = call.row.correlationId ? rankOf.find(*call.row.correlationId) : rankOf.end();
        (own == rankOf.end() ? first : *own->second).addCall(call.tid, call.name, call.row);
    }
    // ROCm 7 tells calls of ROCTx and the ranges that they make, ROCm 6 the ranges alone, as calls.
    const bool isMerged = std::ranges::any_of(process.m_markers, &Process::Marker::isMerged);
    for (auto& [agent, rank] : process.m_ranks) {
        for (const Process::Marker& marker : process.m_markers)
            if (marker.isMerged == isMerged) rank->addRange(marker.tid, marker.text, {}, marker.row);
        for (const Process::Collective& collective : process.m_collectives)
            rank->addNccl(collective.tid, collective.range);
        for (const auto& [tid, name] : process.threadNames) rank->nameThread(tid, name);
    }
}

void RocprofRun::finish(Process& process, int64_t agent, const ReadOptions& options, FileRank& read) {
    read = process.m_ranks.at(agent)->finish(process.m_ranks.size() > 1, options);
    RankRecording& recording = read.recording;
    recording.hostName = process.host;
    recording.process.pid = process.pid;
    const auto known = process.agents.find(agent);
    if (known != process.agents.end()) {
        LocalDevice device;
        device.ordinal = static_cast<int32_t>(known->second.ordinal);
        device.name = known->second.name;
        device.multiprocessors = known->second.computeUnits;
        recording.devices.push_back(std::move(device));
    }
    if (process.m_ranks.size() > 1) return;  // of several the environment tells none
    read.header.rank = process.rank;
    read.header.worldSize = process.worldSize;
    recording.localRank = process.localRank;
}

void RocprofRun::handOver(const ReadOptions& options, const std::function<void(FileRank)>& take) {
    // By device: so are the ranks of a host numbered where nothing tells them.
    std::map<std::tuple<int64_t, int64_t, int64_t>, std::pair<Process*, int64_t>> ranks;  // by device, process, agent
    bool withCollectives = false, withCalls = false;
    for (auto& [id, process] : m_processes) {
        if (process.m_ranks.empty()) continue;
        withCollectives = withCollectives || !process.m_collectives.empty();
        withCalls = withCalls || !process.m_calls.empty();
        joinHost(process);
        for (const auto& [agent, rank] : process.m_ranks) ranks[{rank->device(), id, agent}] = {&process, agent};
    }
    if (ranks.empty())
        throw ImportError(m_file, 0, "the recording holds no kernels and no copies",
                          "record with rocprofv3 --sys-trace --output-format json, or rocpd");
    if (!withCalls)
        m_losses.add("source_absent", "warning", std::nullopt,
                     "no calls of HIP were recorded: what launches and waits cost is not judged; record with "
                     "rocprofv3 --hip-runtime-trace");
    if (!withCollectives)
        m_losses.add("source_absent", "info", std::nullopt,
                     "no calls of RCCL were recorded: what its kernels do is told by their names alone; record with "
                     "rocprofv3 --rccl-trace");
    m_losses.add("source_absent", "info", std::nullopt,
                 "rocprofv3 tells neither communicators nor the sizes of collectives over all ranks: communicators "
                 "are inferred, bandwidths are not judged");
    tellVendor("AMD's, with HIP and RCCL", m_losses);
    bool isFirst = true;
    for (const auto& [key, of] : ranks) {
        FileRank read;
        finish(*of.first, of.second, options, read);
        if (isFirst)  // of the file, and told once
            for (const ImportLoss& loss : m_losses.all())
                read.losses.add(loss.kind, loss.severity, loss.offset, loss.message, loss.count);
        isFirst = false;
        take(std::move(read));
    }
}

}  // namespace rankscope::collector
