// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/exported_run.h"

#include <algorithm>
#include <charconv>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/import_error.h"

namespace rankscope::collector {

namespace {

/// 73 years, so that sums of a few such times do not overflow.
constexpr int64_t kMostExportedNs = int64_t{1} << 61;
/// The largest machines have 200,000 GPUs; a recording without an event takes 2 KB.
constexpr size_t kMostExportedRanks = size_t{1} << 18;

int64_t numberOf(const std::map<std::string, std::string>& meta, const char* key) {
    int64_t number = 0;
    if (const auto found = meta.find(key); found != meta.end())
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
    return number;
}

/// The name under which events tell a column.
std::string_view toldAs(std::string_view column) {
    if (column == "communicator_id") return "communicator";
    return column == "correlation_id" ? "correlation" : column;
}

/// True of what is no argument of an event: its own columns, and those that are set by hand.
bool isNoArgument(std::string_view column) {
    for (const char* own : {"id", "rank", "start_ns", "time_ns", "dur_ns", "name_id", "domain_id"})
        if (column == own) return true;
    return false;
}

std::optional<int64_t> numberArgument(const ToldEvent& event, std::string_view name) {
    for (const auto& [key, value] : event.arguments)
        if (key == name) return value.number;
    return std::nullopt;
}

template <typename Row>
const Row* rowOf(const std::map<int64_t, const Row*>& rows, std::optional<int64_t> id) {
    const auto found = id ? rows.find(*id) : rows.end();
    return found == rows.end() ? nullptr : found->second;
}

/// Replaces the id of a row by its index in this rank; false where it has none.
template <typename Id>
bool localise(Id& id, const std::map<int64_t, int32_t>& local) {
    if constexpr (requires { id.has_value(); }) {
        return !id || localise(*id, local);
    } else {
        const auto found = local.find(id);
        if (found == local.end()) return false;
        id = static_cast<Id>(found->second);
        return true;
    }
}

}  // namespace

int64_t ExportedRun::onHost(int64_t ns) const {
    return std::clamp(ns, -kMostExportedNs, kMostExportedNs) + m_baseNs;
}

ExportedRun::ExportedRun(const std::filesystem::path& file, ExportedAbout about)
    : m_file(file), m_about(std::move(about)), m_baseNs(numberOf(m_about.meta, "start_unix_ns")) {
    if (m_baseNs < 0 || m_baseNs > kMostExportedNs) m_baseNs = 0;
    const auto source = m_about.meta.find("source");
    if (source != m_about.meta.end() && source->second == "flight_recorder")
        throw ImportError(m_file, 0, "this is an export of a flight recorder's dumps, whose states no event tells",
                          "import the dumps themselves");
    m_index = ExportedIndex(m_about);
    if (m_index.ranks.size() > kMostExportedRanks)
        throw ImportError(m_file, 0, "the export tells of " + std::to_string(m_index.ranks.size()) + " ranks",
                          "no job has as many: export the run again");
}

ExportedRun::Rank* ExportedRun::rankOf(int64_t number) {
    const auto known = m_ranks.find(number);
    if (known != m_ranks.end()) return &known->second;
    const auto own = m_index.ranks.find(number);
    if (own == m_index.ranks.end()) return nullptr;
    Rank& rank = m_ranks[number];
    fill(own->second, rank);
    return &rank;
}

void ExportedRun::addRank(int64_t number) {
    const auto own = m_index.ranks.find(number);
    if (own != m_index.ranks.end() && own->second.row->state != store::RankState::missing) rankOf(number);
}

void ExportedRun::fill(const ExportedIndex::OfRank& own, Rank& rank) {
    const store::Rank& row = *own.row;
    RankRecording& recording = rank.recording;
    recording.localRank = row.localRank;
    recording.state = row.state;
    if (const store::Process* process = rowOf(m_index.processes, row.processId)) {
        recording.process = *process;
        if (recording.process.startNs) recording.process.startNs = onHost(*recording.process.startNs);
        if (recording.process.endNs) recording.process.endNs = onHost(*recording.process.endNs);
    }
    for (const store::Stream* stream : own.streams) {
        const store::Device* device = rowOf(m_index.devices, stream->deviceId);
        rank.streams.emplace(stream->id, static_cast<int32_t>(recording.streams.size()));
        recording.streams.push_back({device == nullptr ? 0 : device->ordinal, stream->context, stream->nativeId,
                                     stream->handle, stream->priority});
    }
    for (const store::Thread* thread : own.threads) addThread(*thread, rank);
    fillMachine(own, recording);
    fillCommunicators(own, rank);
    for (const store::FailedAllocation* told : own.failedAllocations) {
        store::FailedAllocation allocation = *told;
        allocation.refusedNs = onHost(allocation.refusedNs);
        recording.failedAllocations.push_back(std::move(allocation));
    }
    for (const store::SourceStatus* source : own.sources) recording.sources.push_back(*source);
    // What the collector says of the whole is found anew.
    for (const store::Loss* loss : own.losses)
        if (loss->source != "collector") recording.losses.push_back(*loss);
}

/// What a host has in common is told once, by the first of its ranks.
void ExportedRun::fillMachine(const ExportedIndex::OfRank& own, RankRecording& recording) {
    const auto add = [&recording](const store::Device& device) {
        recording.devices.push_back({device.ordinal, device.name.value_or(""), device.memoryBytes,
                                     device.multiprocessors, device.computeCapability});
    };
    const auto addLink = [&recording](const store::MachineLink& link) {
        LocalMachineLink local{{}, link.kind, link.name, link.source, link.count, link.generation, link.bytesPerS};
        if (link.rank) local.device = recording.device;
        recording.machineLinks.push_back(std::move(local));
    };
    const auto host = m_index.hosts.find(std::optional<int64_t>(own.row->hostId).value_or(-1));
    const store::Device* device = rowOf(m_index.devices, own.row->deviceId);
    if (device != nullptr) recording.device = device->ordinal;
    if (host == m_index.hosts.end()) return;
    if (host->second.row != nullptr) {
        recording.hostName = host->second.row->name;
        recording.bootId = host->second.row->bootId.value_or("");
    }
    const bool isFirst = m_told.insert(host->first).second;
    if (isFirst)
        for (const store::Device* one : host->second.devices) add(*one);
    else if (device != nullptr)
        add(*device);
    if (isFirst)
        for (const store::MachineLink* link : host->second.links) addLink(*link);
    for (const store::MachineLink* link : own.links)
        if (link->hostId == host->first) addLink(*link);
}

void ExportedRun::fillCommunicators(const ExportedIndex::OfRank& own, Rank& rank) const {
    RankRecording& recording = rank.recording;
    for (const auto& [place, member] : own.members) {
        const store::Communicator& communicator = m_about.communicators[place];
        LocalCommunicator local;
        local.hash = static_cast<uint64_t>(communicator.hash);
        local.identity = communicator.identity;
        local.commRank = member->commRank;
        local.nRanks = communicator.nRanks;
        const auto parent = rank.communicators.find(communicator.parentId.value_or(-1));
        if (parent != rank.communicators.end()) local.parent = parent->second;
        local.name = communicator.name.value_or("");
        if (member->createNs) local.createNs = onHost(*member->createNs);
        if (member->destroyNs) local.destroyNs = onHost(*member->destroyNs);
        local.endKind = member->endKind;
        rank.communicators.emplace(communicator.id, static_cast<int32_t>(recording.communicators.size()));
        recording.communicators.push_back(std::move(local));
    }
}

void ExportedRun::addThread(const store::Thread& thread, Rank& rank) {
    rank.threads.emplace(thread.id, static_cast<int32_t>(rank.recording.threads.size()));
    rank.recording.threads.push_back({thread.tid, thread.name.value_or("")});
}

/// A thread that is told of no rank is of those whose events name it.
void ExportedRun::useSharedThread(const ToldEvent& event, Rank& rank) const {
    if (m_index.sharedThreads.empty()) return;
    const auto id = numberArgument(event, "thread_id");
    const store::Thread* shared = rowOf(m_index.sharedThreads, id);
    if (shared != nullptr && !rank.threads.contains(*id)) addThread(*shared, rank);
}

/// Sets what an event's arguments tell, and makes ids of streams, threads and communicators local.
template <typename Row>
bool ExportedRun::decode(const ToldEvent& event, Rank& rank, Row& row) const {
    bool good = setColumns(row, [&](std::string_view column) -> std::optional<ToldValue> {
        if (isNoArgument(column)) return std::nullopt;
        const std::string_view name = toldAs(column);
        for (const auto& [key, value] : event.arguments)
            if (key == name) return value;
        return std::nullopt;
    });
    if constexpr (requires { row.streamId; }) good = localise(row.streamId, rank.streams) && good;
    if constexpr (requires { row.threadId; }) {
        useSharedThread(event, rank);
        good = localise(row.threadId, rank.threads) && good;
    }
    if constexpr (requires { row.communicatorId; }) good = localise(row.communicatorId, rank.communicators) && good;
    if constexpr (requires { row.startNs; }) row.startNs = event.startNs + m_baseNs;
    if constexpr (requires { row.durNs; }) {
        if constexpr (requires { row.durNs.has_value(); })
            row.durNs = event.durNs;
        else
            row.durNs = event.durNs.value_or(0);
    }
    return good;
}

ExportedRun::Place ExportedRun::leaveOut() {
    m_losses.add("bad_block", "warning", std::nullopt,
                 "events are left out whose times or arguments are none that an export tells");
    return {};
}

template <typename Row>
ExportedRun::Place ExportedRun::keep(const ToldEvent& event, Rank& rank, Row row, std::vector<Row>& rows,
                                     Place::Table table) {
    if (!decode(event, rank, row)) return leaveOut();
    rows.push_back(std::move(row));
    return {table, event.process, rows.size() - 1};
}

ExportedRun::Place ExportedRun::keepKernel(const ToldEvent& event, Rank& rank) {
    RankRecording& recording = rank.recording;
    store::Kernel kernel;
    const auto symbol = m_about.symbols.find(numberArgument(event, "symbol").value_or(-1));
    if (symbol == m_about.symbols.end()) {
        kernel.nameId = recording.strings.intern(event.name);
    } else {
        const auto [known, isNew] = rank.symbols.try_emplace(symbol->first);
        if (isNew) known->second = recording.strings.intern(symbol->second);
        kernel.nameId = known->second;
    }
    const Place place = keep(event, rank, kernel, recording.kernels, Place::Table::kernel);
    const auto id = numberArgument(event, "kernel_id");
    if (place.table != Place::Table::none && id) rank.kernels.emplace(*id, static_cast<int64_t>(place.index));
    return place;
}

ExportedRun::Place ExportedRun::keepRange(const ToldEvent& event, Rank& rank) {
    store::NvtxRange range;
    range.nameId = rank.recording.strings.intern(event.name);
    for (const auto& [key, value] : event.arguments)
        if (key == "domain" && value.text) range.domainId = rank.recording.strings.intern(*value.text);
    return keep(event, rank, range, rank.recording.nvtx, Place::Table::nvtx);
}

ExportedRun::Place ExportedRun::keepCall(const ToldEvent& event, Rank& rank) {
    const Place place = keep(event, rank, store::NcclCall(), rank.recording.ncclCalls, Place::Table::ncclCall);
    const auto id = numberArgument(event, "call_id");
    if (place.table != Place::Table::none && id) rank.calls.emplace(*id, static_cast<int64_t>(place.index));
    return place;
}

ExportedRun::Place ExportedRun::keepDeviceEvent(const ToldEvent& event, Rank& rank) {
    store::CudaEvent row;
    if (!decode(event, rank, row)) return leaveOut();
    row.timeNs = event.startNs + m_baseNs;
    rank.recording.cudaEvents.push_back(row);
    return {};
}

ExportedRun::Place ExportedRun::add(const ToldEvent& event) {
    if (event.category == "finding" || event.category == "step") return {};  // found anew
    if (event.startNs < -kMostExportedNs || event.startNs > kMostExportedNs || event.durNs.value_or(0) < 0 ||
        event.durNs.value_or(0) > kMostExportedNs)
        return leaveOut();
    Rank* const known = rankOf(event.process);
    if (known == nullptr) return leaveOut();
    Rank& rank = *known;
    RankRecording& recording = rank.recording;
    ++rank.events;
    if (event.category == "kernel" || event.category == "nccl_kernel") return keepKernel(event, rank);
    if (event.category == "memcpy") return keep(event, rank, store::Memcpy(), recording.memcpys, Place::Table::memcpy);
    if (event.category == "memset") return keep(event, rank, store::Memset(), recording.memsets, Place::Table::memset);
    if (event.category == "api_call") {
        store::ApiCall call;
        call.nameId = recording.strings.intern(event.name);
        return keep(event, rank, call, recording.apiCalls, Place::Table::apiCall);
    }
    if (event.category == "synchronization")
        return keep(event, rank, store::Synchronization(), recording.synchronizations, Place::Table::synchronization);
    if (event.category == "cuda_event") return keepDeviceEvent(event, rank);
    if (event.category == "nvtx") return keepRange(event, rank);
    if (event.category == "nccl_call") return keepCall(event, rank);
    if (event.category == "proxy_op")
        return keep(event, rank, store::ProxyOp(), recording.proxyOps, Place::Table::proxyOp);
    return leaveOut();
}

void ExportedRun::addCounter(int64_t process, std::string_view name, int64_t ns, int64_t value) {
    Rank* const rank = ns < -kMostExportedNs || ns > kMostExportedNs ? nullptr : rankOf(process);
    if (rank == nullptr) {
        leaveOut();
        return;
    }
    RankRecording& recording = rank->recording;
    store::Counter counter;
    counter.timeNs = ns + m_baseNs;
    counter.nameId = recording.strings.intern(name);
    counter.value = value;
    recording.counters.push_back(counter);
}

void ExportedRun::setDuration(const Place& place, int64_t durNs) {
    if (place.table == Place::Table::none || durNs < 0 || durNs > kMostExportedNs) return;
    RankRecording& recording = m_ranks.at(place.rank).recording;
    switch (place.table) {
        case Place::Table::none:
            break;
        case Place::Table::kernel:
            recording.kernels[place.index].durNs = durNs;
            break;
        case Place::Table::memcpy:
            recording.memcpys[place.index].durNs = durNs;
            break;
        case Place::Table::memset:
            recording.memsets[place.index].durNs = durNs;
            break;
        case Place::Table::apiCall:
            recording.apiCalls[place.index].durNs = durNs;
            break;
        case Place::Table::synchronization:
            recording.synchronizations[place.index].durNs = durNs;
            break;
        case Place::Table::nvtx:
            recording.nvtx[place.index].durNs = durNs;
            break;
        case Place::Table::ncclCall:
            recording.ncclCalls[place.index].durNs = durNs;
            break;
        case Place::Table::proxyOp:
            recording.proxyOps[place.index].durNs = durNs;
            break;
    }
}

/// Joins calls with the kernels behind them, and network operations with their calls.
void ExportedRun::join(Rank& rank) {
    const auto replace = [](store::Maybe<int64_t>& id, const std::map<int64_t, int64_t>& local) {
        if (!id) return;
        const auto found = local.find(*id);
        id = found == local.end() ? std::nullopt : store::Maybe<int64_t>(found->second);
    };
    for (store::NcclCall& call : rank.recording.ncclCalls) replace(call.kernelId, rank.kernels);
    for (store::ProxyOp& op : rank.recording.proxyOps) replace(op.callId, rank.calls);
}

void ExportedRun::handOver(const std::function<void(FileRank)>& take) {
    if (std::ranges::all_of(m_ranks, [](const auto& rank) { return rank.second.events == 0; }))
        throw ImportError(m_file, 0, "the export holds no event", "export the run again");
    const auto run = std::make_shared<const std::map<std::string, std::string>>(m_about.meta);
    int64_t worldSize = numberOf(m_about.meta, "job_world_size");
    if (worldSize <= 0 && run->contains("source") && run->at("source") == "capture")
        worldSize = numberOf(m_about.meta, "world_size");
    m_losses.add("source_absent", "info", std::nullopt,
                 "an export holds no allocations, no sums of kernels, no stacks of threads and no health of devices");
    if (m_about.cutSymbols > 0)
        m_losses.add("bad_block", "info", std::nullopt, "names of kernels are cut that have more than 16 KiB",
                     m_about.cutSymbols);
    if (std::ranges::any_of(m_about.losses, [](const store::Loss& loss) { return loss.kind == "calls_left_out"; }))
        m_losses.add(
            "source_absent", "warning", std::nullopt,
            "the run had left out the calls of some steps; an export does not tell of which, so that these are "
            "analysed as if they had none");
    bool isFirst = true;
    for (auto& [number, rank] : m_ranks) {
        join(rank);
        FileRank read;
        read.header.rank = number;
        if (worldSize > 0) read.header.worldSize = worldSize;
        read.header.run = run;
        read.recording = std::move(rank.recording);
        read.events = rank.events;
        if (isFirst) read.losses = std::move(m_losses);
        isFirst = false;
        take(std::move(read));
    }
}

}  // namespace rankscope::collector
