// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/device_rank.h"

#include <algorithm>
#include <utility>

#include "collector/importers/api_name.h"
#include "collector/importers/recording_rows.h"
#include "collector/ingest/communication_kernels.h"

namespace rankscope::collector {

namespace {

/// "cudaLaunchKernel_v7000", as Nsight Systems names calls of the runtime, without the version that it was new in.
std::string_view withoutVersion(std::string_view name) {
    const size_t at = name.rfind("_v");
    if (at == std::string_view::npos || name.size() - at < 6) return name;  // cuMemAlloc_v2 is a name of its own
    for (size_t i = at + 2; i < name.size(); ++i)
        if (name[i] < '0' || name[i] > '9') return name;
    return name.substr(0, at);
}

/// The operator in "aten::copy_, op_id = 991065" and "aten::mm, seq = 3, op_id = 7", as torch.autograd.profiler's
/// emit_nvtx writes them; empty for other texts.
std::string_view operatorIn(std::string_view text) {
    const size_t comma = text.find(", ");
    if (comma == std::string_view::npos) return {};
    const std::string_view rest = text.substr(comma + 2);
    for (const std::string_view mark : {"op_id = ", "seq = ", "sizes = ", "input_op_ids = "})
        if (rest.starts_with(mark)) return text.substr(0, comma);
    return {};
}

/// NCCL tells the part of one rank where nccl-tests count that of all.
bool countsAllRanks(store::Op op) {
    return op == store::Op::allGather || op == store::Op::reduceScatter || op == store::Op::allToAll ||
           op == store::Op::gather || op == store::Op::scatter;
}

}  // namespace

// ---- one row

int32_t DeviceRank::streamOf(int64_t context, int64_t stream) {
    const uint64_t key = (static_cast<uint64_t>(context) << 40) ^ static_cast<uint64_t>(stream);
    const auto [known, isNew] = m_streams.try_emplace(key, static_cast<int32_t>(m_recording.streams.size()));
    if (isNew) {
        LocalStream local;
        local.device = static_cast<int32_t>(m_device);
        local.context = context;
        local.nativeId = stream;
        m_recording.streams.push_back(local);
    }
    return known->second;
}

int32_t DeviceRank::threadOf(int64_t tid) {
    const auto [known, isNew] = m_threads.try_emplace(tid, static_cast<int32_t>(m_recording.threads.size()));
    if (isNew) m_recording.threads.push_back({tid, ""});
    return known->second;
}

void DeviceRank::nameThread(int64_t tid, std::string_view name) {
    const auto known = m_threads.find(tid);
    if (known != m_threads.end()) m_recording.threads[static_cast<size_t>(known->second)].name = std::string(name);
}

void DeviceRank::addKernel(const DeviceRow& row, int64_t nameId, store::Kernel rest, store::Op told) {
    const auto [known, isNew] = m_names.try_emplace(nameId, 0);
    if (isNew) known->second = m_recording.strings.intern(m_nameOf(nameId));
    rest.nameId = known->second;
    addKernelRow(row, rest, told);
}

void DeviceRank::addNamedKernel(const DeviceRow& row, std::string_view name, store::Kernel rest) {
    rest.nameId = m_recording.strings.intern(name);
    addKernelRow(row, rest, store::Op::unknown);
}

template <typename Row>
void DeviceRank::place(const DeviceRow& row, Row& placed) {
    placed.streamId = streamOf(row.context, row.stream);
    placed.startNs = row.startNs;
    placed.durNs = row.durNs;
    placed.correlationId = correlationOf(row.correlation);
}

void DeviceRank::addKernelRow(const DeviceRow& row, store::Kernel rest, store::Op told) {
    ++m_rows;
    m_kernelNs += static_cast<double>(row.durNs);
    const auto name = static_cast<size_t>(rest.nameId);
    while (m_isNccl.size() <= name)
        m_isNccl.push_back(isNcclKernelName(m_recording.strings[static_cast<int32_t>(m_isNccl.size())]));
    place(row, rest);
    if (told != store::Op::unknown) m_told.emplace(m_recording.kernels.size(), told);
    if (m_isNccl[name] || told != store::Op::unknown) {
        rest.nccl = store::NcclKernel::byName;
        m_communication.push_back(m_recording.kernels.size());
    }
    m_recording.kernels.push_back(rest);
}

void DeviceRank::addCopy(const DeviceRow& row, store::Memcpy rest) {
    ++m_rows;
    place(row, rest);
    m_recording.memcpys.push_back(rest);
}

void DeviceRank::addSet(const DeviceRow& row, int64_t bytes) {
    ++m_rows;
    store::Memset set;
    place(row, set);
    set.bytes = bytes;
    m_recording.memsets.push_back(set);
}

void DeviceRank::addEvent(const DeviceRow& row, int64_t eventId) {
    ++m_rows;
    store::CudaEvent event;
    event.streamId = streamOf(row.context, row.stream);
    event.timeNs = row.startNs;
    event.eventId = eventId;
    event.correlationId = correlationOf(row.correlation);
    m_recording.cudaEvents.push_back(event);
}

void DeviceRank::addWait(const DeviceRow& row, bool onStream, store::Synchronization rest) {
    ++m_rows;
    if (onStream) rest.streamId = streamOf(row.context, row.stream);
    rest.startNs = row.startNs;
    rest.durNs = row.durNs;
    rest.correlationId = correlationOf(row.correlation);
    m_recording.synchronizations.push_back(rest);
}

void DeviceRank::addCall(int64_t tid, int64_t nameId, store::ApiCall rest) {
    ++m_rows;
    const auto [known, isNew] = m_names.try_emplace(nameId, 0);
    if (isNew) known->second = m_recording.strings.intern(withoutVersion(m_nameOf(nameId)));
    rest.nameId = known->second;
    rest.threadId = threadOf(tid);
    rest.kind = apiKindFromName(m_recording.strings[rest.nameId]);
    rest.source = store::ApiSource::imported;
    m_recording.apiCalls.push_back(rest);
}

void DeviceRank::addRange(int64_t tid, std::string_view text, std::string_view domain, store::NvtxRange rest) {
    ++m_rows;
    if (const auto annotation = parseCollectiveAnnotation(text.substr(0, text.find(','))); annotation && rest.durNs)
        m_annotations.push_back({threadOf(tid), rest.startNs, rest.startNs + *rest.durNs, *annotation});
    const std::string_view operation = operatorIn(text);
    if (!operation.empty() && rest.durNs && rest.kind == store::NvtxKind::pushPop) {
        m_operations.add(operation, tid, rest.startNs, *rest.durNs, false);
        return;
    }
    rest.nameId = m_recording.strings.intern(text);
    rest.threadId = threadOf(tid);
    if (!domain.empty()) rest.domainId = m_recording.strings.intern(domain);
    m_recording.nvtx.push_back(rest);
}

void DeviceRank::addCounter(int64_t timeNs, std::string_view name, int64_t value) {
    ++m_rows;
    store::Counter counter;
    counter.timeNs = timeNs;
    counter.nameId = m_recording.strings.intern(name);
    counter.value = value;
    m_recording.counters.push_back(counter);
}

void DeviceRank::addOperation(int64_t tid, std::string_view name, int64_t startNs, int64_t durNs, bool isPython) {
    ++m_rows;
    m_operations.add(name, tid, startNs, durNs, isPython);
}

void DeviceRank::addNccl(int64_t tid, NcclRange range) {
    ++m_rows;
    range.thread = threadOf(tid);
    m_ranges.push_back(range);
}

// ---- NCCL's calls

std::vector<DeviceRank::Launched> DeviceRank::launchedKernels() const {
    std::unordered_map<uint32_t, const store::ApiCall*> launchOf;
    for (const size_t kernel : m_communication)
        if (const auto& correlation = m_recording.kernels[kernel].correlationId)
            launchOf.emplace(*correlation, nullptr);
    for (const store::ApiCall& call : m_recording.apiCalls) {
        if (!call.correlationId) continue;
        const auto wanted = launchOf.find(*call.correlationId);
        if (wanted != launchOf.end() && (wanted->second == nullptr || call.kind == store::ApiKind::launch))
            wanted->second = &call;
    }
    std::vector<Launched> launched;
    for (const size_t kernel : m_communication) {
        const auto& correlation = m_recording.kernels[kernel].correlationId;
        launched.push_back({kernel, correlation ? launchOf.at(*correlation) : nullptr});
    }
    std::stable_sort(launched.begin(), launched.end(), [](const Launched& a, const Launched& b) {
        const auto key = [](const Launched& of) {
            return of.launch == nullptr ? std::pair<int32_t, int64_t>(-1, 0)
                                        : std::pair(of.launch->threadId, of.launch->startNs);
        };
        return key(a) < key(b);
    });
    return launched;
}

void DeviceRank::makeCalls(bool otherDevices) {
    std::stable_sort(m_annotations.begin(), m_annotations.end(), [](const Annotation& a, const Annotation& b) {
        return std::pair(a.thread, a.startNs) < std::pair(b.thread, b.startNs);
    });
    const std::vector<Launched> kernels = launchedKernels();
    std::vector<NcclLaunch> launches;
    for (const Launched& kernel : kernels)
        if (kernel.launch != nullptr) launches.push_back({kernel.launch->threadId, kernel.launch->startNs});
    int64_t unended = 0;
    const std::vector<NcclBatch> batches = batchesOf(m_ranges, launches, unended);
    std::vector<std::span<const Launched>> kernelsOf;  // by batch
    std::vector<bool> isTaken(kernels.size());
    size_t at = 0;
    for (const NcclBatch& batch : batches) {
        const auto isBefore = [&](const Launched& kernel) {
            return kernel.launch == nullptr ||
                   std::pair(kernel.launch->threadId, kernel.launch->startNs) < std::pair(batch.thread, batch.startNs);
        };
        while (at < kernels.size() && isBefore(kernels[at])) ++at;
        const size_t first = at;
        for (; at < kernels.size() && kernels[at].launch->threadId == batch.thread &&
               kernels[at].launch->startNs <= batch.endNs;
             ++at)
            isTaken[at] = true;
        kernelsOf.emplace_back(kernels.data() + first, at - first);
        learnStreams(batch, kernelsOf.back());
    }
    int64_t withoutKernel = 0;
    for (size_t i = 0; i < batches.size(); ++i) {
        if (batches[i].operations.empty())
            for (const Launched& kernel : kernelsOf[i]) addCallByKernel(kernel, store::Op::unknown);
        else if (kernelsOf[i].empty())
            withoutKernel += static_cast<int64_t>(batches[i].operations.size());
        else
            addCallsOf(batches[i], kernelsOf[i], otherDevices);
    }
    for (size_t i = 0; i < kernels.size(); ++i)
        if (!isTaken[i]) addCallByKernel(kernels[i], store::Op::unknown);
    if (withoutKernel > 0)
        m_losses.add("source_absent", "info", std::nullopt,
                     "calls of NCCL without a kernel in the recording are left out: captured into a CUDA graph, or "
                     "their kernels were not recorded",
                     withoutKernel);
    if (unended > 0)
        m_losses.add("source_absent", "info", std::nullopt,
                     "groups of NCCL's calls without ncclGroupEnd in the recording were taken to end where a kernel "
                     "was launched",
                     unended);
}

void DeviceRank::learnStreams(const NcclBatch& batch, std::span<const Launched> kernels) {
    if (batch.operations.empty()) return;
    const std::optional<int64_t> hash = batch.operations.front().payload.communicator;
    const bool ofOne = hash && std::ranges::all_of(batch.operations, [&](const NcclRange& operation) {
                           return operation.payload.communicator == hash;
                       });
    if (!ofOne) return;
    for (const Launched& kernel : kernels) {
        const auto [known, isNew] =
            m_communicatorOn.try_emplace(m_recording.kernels[kernel.kernel].streamId, static_cast<uint64_t>(*hash));
        if (!isNew && known->second != static_cast<uint64_t>(*hash)) known->second = std::nullopt;
    }
}

/// The kernels of a batch by the hash of their communicator: by their stream, where that is one communicator's alone;
/// the others in the order of hashes, since so ncclGroupEnd launches communicators (ncclGroupCommJoin in NCCL's
/// src/include/group.h keeps them by ascending commHash, an unsigned number), one after the other.
std::map<uint64_t, std::vector<DeviceRank::Launched>> DeviceRank::kernelsByCommunicator(
    const std::vector<NcclRange>& operations, std::span<const Launched> kernels) const {
    std::map<uint64_t, size_t> operationsOf;
    for (const NcclRange& operation : operations)
        ++operationsOf[static_cast<uint64_t>(*operation.payload.communicator)];
    std::map<uint64_t, std::vector<Launched>> result;
    std::vector<Launched> rest;
    for (const Launched& kernel : kernels) {
        const auto known = m_communicatorOn.find(m_recording.kernels[kernel.kernel].streamId);
        const bool isTold = known != m_communicatorOn.end() && known->second && operationsOf.count(*known->second) > 0;
        (isTold ? result[*known->second] : rest).push_back(kernel);
    }
    if (rest.size() + result.size() < operationsOf.size()) {  // some share a stream after all
        result.clear();
        rest.assign(kernels.begin(), kernels.end());
    }
    std::vector<uint64_t> open;
    size_t openOperations = 0;
    for (const auto& [hash, count] : operationsOf) {
        if (result.count(hash) > 0) continue;
        open.push_back(hash);
        openOperations += count;
    }
    size_t next = 0;
    for (const uint64_t hash : open) {
        // A kernel for each operation, or one for each communicator and what is over for the last.
        size_t count = rest.size() == openOperations ? operationsOf[hash] : 1;
        if (hash == open.back()) count = rest.size() - next;
        std::vector<Launched>& own = result[hash];
        for (; count > 0 && next < rest.size(); --count) own.push_back(rest[next++]);
        if (own.empty()) own.push_back(rest.back());  // fewer kernels than communicators
    }
    return result;
}

/// A batch and the kernels that it launched, in their order. With payloads every operation is a call on a kernel of its
/// communicator: on that in its place where each operation has one, else on the first. Without, nothing tells what of a
/// group is in which kernel: a call for each kernel then.
void DeviceRank::addCallsOf(const NcclBatch& batch, std::span<const Launched> kernels, bool otherDevices) {
    const auto& operations = batch.operations;
    const bool told = !otherDevices && std::ranges::all_of(operations, [](const NcclRange& operation) {
        return operation.payload.communicator.has_value();
    });
    if (!told) {
        const bool inOrder = operations.size() == kernels.size();
        const bool alike = std::ranges::all_of(
            operations, [&](const NcclRange& operation) { return operation.op == operations.front().op; });
        for (size_t i = 0; i < kernels.size(); ++i) {
            addCallByKernel(kernels[i], inOrder && !otherDevices ? operations[i].op
                                        : alike                  ? operations.front().op
                                                                 : store::Op::unknown);
            // What one rank hands in is what counts, unless it is told of all.
            if (inOrder && !otherDevices && !countsAllRanks(operations[i].op))
                m_recording.ncclCalls.back().bytes = operations[i].payload.bytes;
        }
        return;
    }
    const auto kernelsOf = kernelsByCommunicator(operations, kernels);
    std::map<uint64_t, size_t> operationsOf, placeIn;  // by communicator
    for (const NcclRange& operation : operations)
        ++operationsOf[static_cast<uint64_t>(*operation.payload.communicator)];
    for (const NcclRange& operation : operations) {
        const auto hash = static_cast<uint64_t>(*operation.payload.communicator);
        const std::vector<Launched>& own = kernelsOf.at(hash);
        const size_t place = placeIn[hash]++;
        const Launched& kernel = own[own.size() == operationsOf[hash] ? place : 0];
        store::NcclCall call = callOf(kernel);
        m_recording.kernels[kernel.kernel].nccl = store::NcclKernel::byCall;
        call.threadId = operation.thread;
        call.startNs = operation.startNs;
        call.durNs = operation.endNs - operation.startNs;
        call.op = operation.op;
        call.evidence = store::evidence::kImported | store::evidence::kNvtxPayload;
        call.communicatorId = communicatorOf(*operation.payload.communicator);
        if (operations.size() > 1) call.groupId = batch.startNs;
        const int32_t ranks = m_recording.communicators[static_cast<size_t>(*call.communicatorId)].nRanks;
        if (operation.payload.peer && *operation.payload.peer >= 0 && *operation.payload.peer < kMostRanks)
            call.peer = static_cast<int32_t>(*operation.payload.peer);
        int64_t bytes = operation.payload.bytes.value_or(-1);
        if (bytes >= 0 &&
            (!countsAllRanks(operation.op) || (ranks > 0 && !__builtin_mul_overflow(bytes, ranks, &bytes))))
            call.bytes = bytes;
        m_recording.ncclCalls.push_back(call);
        m_recording.toldGroupSizes.push_back(0);
    }
}

void DeviceRank::addCallByKernel(const Launched& kernel, store::Op op) {
    store::NcclCall call = callOf(kernel);
    call.op = op;
    call.evidence = store::evidence::kImported;
    if (op == store::Op::unknown && kernel.launch != nullptr) {
        const auto behind = std::upper_bound(m_annotations.begin(), m_annotations.end(),
                                             std::pair(kernel.launch->threadId, kernel.launch->startNs),
                                             [](const std::pair<int32_t, int64_t>& key, const Annotation& annotation) {
                                                 return key < std::pair(annotation.thread, annotation.startNs);
                                             });
        if (behind != m_annotations.begin() && std::prev(behind)->thread == kernel.launch->threadId &&
            std::prev(behind)->endNs >= kernel.launch->startNs)
            call.op = std::prev(behind)->told.op;
    }
    if (const auto told = m_told.find(kernel.kernel); call.op == store::Op::unknown && told != m_told.end())
        call.op = told->second;
    if (call.op == store::Op::unknown) {
        call.op = opFromKernelName(m_recording.strings[m_recording.kernels[kernel.kernel].nameId]);
        call.evidence = store::evidence::kInferred;
    } else {
        m_recording.kernels[kernel.kernel].nccl = store::NcclKernel::byCall;
    }
    m_recording.ncclCalls.push_back(call);
    m_recording.toldGroupSizes.push_back(0);
}

/// The call that a kernel is of, without what it does.
store::NcclCall DeviceRank::callOf(const Launched& kernel) const {
    const store::Kernel& row = m_recording.kernels[kernel.kernel];
    store::NcclCall call;
    call.startNs = row.startNs;  // launched before the recording began: no later than this
    if (kernel.launch != nullptr) {
        call.threadId = kernel.launch->threadId;
        call.startNs = kernel.launch->startNs;
        call.durNs = kernel.launch->durNs;
    }
    call.streamId = row.streamId;
    call.kernelId = static_cast<int64_t>(kernel.kernel);
    return call;
}

int64_t DeviceRank::communicatorOf(int64_t hash) {
    const auto [known, isNew] =
        m_communicators.try_emplace(hash, static_cast<int64_t>(m_recording.communicators.size()));
    if (!isNew) return known->second;
    LocalCommunicator communicator;
    communicator.hash = static_cast<uint64_t>(hash);
    communicator.identity = "comm_hash";
    for (const NcclRange& range : m_ranges) {
        if (range.kind != NcclRange::Kind::init || range.payload.communicator != hash) continue;
        const int64_t ranks = range.payload.ranks.value_or(0), rank = range.payload.rank.value_or(-1);
        if (ranks > 0 && ranks < kMostRanks) communicator.nRanks = static_cast<int32_t>(ranks);
        if (rank >= 0 && rank < ranks && ranks < kMostRanks) communicator.commRank = static_cast<int32_t>(rank);
    }
    m_recording.communicators.push_back(communicator);
    return known->second;
}

/// The largest communicator that the process made is taken for the job's: its first one, in PyTorch and MPI programs.
void DeviceRank::tellRank(RankHeader& header) const {
    int64_t most = 1;  // a communicator of one rank tells nothing of a job
    for (const NcclRange& range : m_ranges) {
        const int64_t ranks = range.payload.ranks.value_or(0), rank = range.payload.rank.value_or(-1);
        if (range.kind != NcclRange::Kind::init || ranks <= most || ranks >= kMostRanks || rank < 0 || rank >= ranks)
            continue;
        most = ranks;
        header.rank = rank;
        header.worldSize = ranks;
        header.rankCommunicator.reset();
        if (range.payload.communicator) header.rankCommunicator = static_cast<uint64_t>(*range.payload.communicator);
    }
}

// ---- the whole

FileRank DeviceRank::finish(bool otherDevices, const ReadOptions& options) {
    setDepths(m_recording);
    addKeptOperations(m_operations, options.allOperations, m_recording, [this](int64_t tid) { return threadOf(tid); });
    makeCalls(otherDevices);
    FileRank result;
    if (!otherDevices) tellRank(result.header);
    if (m_recording.kernels.empty())
        m_losses.add(
            "source_absent", "warning", std::nullopt,
            "there are no GPU kernels; record with nsys profile --trace=cuda,nvtx, or rocprofv3 --kernel-trace");
    m_recording.device = static_cast<int32_t>(m_device);
    result.recording = std::move(m_recording);
    result.losses = std::move(m_losses);
    result.events = m_rows;
    return result;
}

}  // namespace rankscope::collector
