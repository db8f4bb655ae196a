// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/rank_events.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/text/lists.h"
#include "collector/store/reader.h"

namespace rankscope::facts {
namespace {

int64_t correlationOf(const store::Maybe<uint32_t>& id) {
    return id ? int64_t{*id} : -1;
}

void readKernels(store::TraceReader& trace, int rank, RankEvents& events) {
    events.firstKernelId = trace.extent<store::Kernel>(rank).first;
    trace.forEach<store::Kernel>(rank, [&](const store::Kernel& row) {
        const int64_t end = row.startNs + row.durNs;
        if (row.nccl == store::NcclKernel::no) {
            const KernelKey key{row.nameId, row.gridBlocks ? int64_t{*row.gridBlocks} : -1,
                                row.blockThreads ? int64_t{*row.blockThreads} : -1};
            events.compute.push_back({row.startNs, end, key, row.streamId,
                                      static_cast<int32_t>(row.id - events.firstKernelId),
                                      correlationOf(row.correlationId)});
        } else {
            const uint32_t blocks = std::min<uint32_t>(row.gridBlocks.value_or(0), INT32_MAX);
            events.communication.push_back({.kernelId = row.id,
                                            .streamId = row.streamId,
                                            .correlation = correlationOf(row.correlationId),
                                            .channels = static_cast<int32_t>(blocks),
                                            .startNs = row.startNs,
                                            .endNs = end});
        }
    });
}

MemoryTask memoryTask(const store::Memcpy& row) {
    constexpr int32_t kHostToDevice = 1, kDeviceToHost = 2;  // CUpti_ActivityMemcpyKind
    constexpr int32_t kPageable = 1, kPinned = 2;            // CUpti_ActivityMemoryKind
    const bool toDevice = row.kind == kHostToDevice, toHost = row.kind == kDeviceToHost;
    const int32_t hostSide = toDevice ? row.srcMemory.value_or(0) : toHost ? row.dstMemory.value_or(0) : 0;
    return {.startNs = row.startNs,
            .endNs = row.startNs + row.durNs,
            .correlation = correlationOf(row.correlationId),
            .copyId = row.id,
            .streamId = row.streamId,
            .bytes = row.bytes,
            .toDevice = toDevice,
            .toHost = toHost,
            .pageable = hostSide == kPageable,
            .pinned = hostSide == kPinned};
}

void readMemoryTasks(store::TraceReader& trace, int rank, RankEvents& events) {
    trace.forEach<store::Memcpy>(rank, [&](const store::Memcpy& row) { events.memory.push_back(memoryTask(row)); });
    trace.forEach<store::Memset>(rank, [&](const store::Memset& row) {
        events.memory.push_back({.startNs = row.startNs,
                                 .endNs = row.startNs + row.durNs,
                                 .correlation = correlationOf(row.correlationId),
                                 .streamId = row.streamId});
    });
    std::ranges::sort(events.memory, {}, &MemoryTask::startNs);
}

void addCall(CommTask& task, store::Op op, store::DataType type, int64_t communicator, int64_t bytes) {
    if (task.calls == 0) {
        task.op = op;
        task.dataType = type;
        task.communicatorId = communicator;
        task.bytes = bytes;
    } else if (bytes >= 0) {
        task.bytes = std::max<int64_t>(task.bytes, 0) + bytes;
    }
    ++task.calls;
}

/// Joins the NCCL kernels with their calls, collective instances and p2p instances.
void joinCalls(store::TraceReader& trace, const TraceFacts& facts, int rank, RankEvents& events) {
    std::unordered_map<int64_t, CommTask*> byKernel;
    for (CommTask& task : events.communication) byKernel[task.kernelId] = &task;
    std::unordered_map<int64_t, CommTask*> byCall;
    trace.forEach<store::NcclCall>(rank, [&](const store::NcclCall& row) {
        const auto kernel = row.kernelId ? byKernel.find(*row.kernelId) : byKernel.end();
        if (kernel == byKernel.end()) return;
        const bool known = row.communicatorId && facts.communicators.contains(*row.communicatorId);
        addCall(*kernel->second, row.op, row.dataType, known ? *row.communicatorId : 0, row.bytes.value_or(-1));
        if (row.channels) kernel->second->channels = *row.channels;
        kernel->second->launchNs = std::max(kernel->second->launchNs, row.startNs + row.durNs);
        byCall[row.id] = kernel->second;
    });
    for (const store::CollectiveMember& member :
         std::ranges::equal_range(facts.members, rank, {}, &store::CollectiveMember::rank)) {
        if (!member.kernelId) continue;
        const auto kernel = byKernel.find(*member.kernelId);
        const store::Collective* collective = facts.findCollective(member.collectiveId);
        if (kernel == byKernel.end() || collective == nullptr) continue;
        CommTask& task = *kernel->second;
        // An imported trace may have instances without calls.
        if (task.calls == 0)
            addCall(task, collective->op, collective->dataType, collective->communicatorId,
                    collective->bytes.value_or(-1));
        task.collectiveId = collective->id;
        if (!member.waitNs) task.waitKnown = false;
        task.waitNs = std::max(task.waitNs, member.waitNs ? *member.waitNs : facts.likelyWaitNs(*collective, member));
        task.lastRank = collective->lastRank.value_or(-1);
        task.algorithm = collective->algorithm;
        task.protocol = collective->protocol;
    }
    const auto joinSide = [&](store::Maybe<int64_t> call, store::Maybe<int64_t> waitNs, int peer) {
        const auto at = call ? byCall.find(*call) : byCall.end();
        const int64_t waited = waitNs.value_or(0);
        if (at == byCall.end() || waited < at->second->waitNs) return;
        at->second->lastRank = waited > 0 ? peer : rank;
        at->second->waitNs = waited;
    };
    const auto messages = facts.messagesOf.find(rank);
    for (const uint32_t i : messages == facts.messagesOf.end() ? std::vector<uint32_t>() : messages->second) {
        const store::P2p& p2p = facts.pointToPoint[i];
        if (p2p.srcRank == rank) joinSide(p2p.sendCallId, p2p.sendWaitNs, p2p.dstRank);
        if (p2p.dstRank == rank) joinSide(p2p.recvCallId, p2p.recvWaitNs, p2p.srcRank);
    }
    for (CommTask& task : events.communication)
        task.waitNs = std::clamp<int64_t>(task.waitNs, 0, task.endNs - task.startNs);
}

void readHostCalls(store::TraceReader& trace, const TraceFacts& facts, int rank, RankEvents& events) {
    std::unordered_map<int64_t, const MemoryTask*> copies;
    for (const MemoryTask& task : events.memory)
        if (task.copyId != 0 && task.correlation >= 0) copies.emplace(task.correlation, &task);
    std::unordered_map<int32_t, bool> lastToDevice;  // by thread: what it submitted last is a copy to the device
    trace.forEach<store::ApiCall>(rank, [&](const store::ApiCall& row) {
        HostCall call{.startNs = row.startNs,
                      .endNs = row.startNs + row.durNs,
                      .correlation = correlationOf(row.correlationId),
                      .kind = row.kind,
                      .waits = row.kind == store::ApiKind::synchronize,
                      .id = row.id,
                      .nameId = row.nameId,
                      .threadId = row.threadId};
        if (row.kind == store::ApiKind::copy) {
            // A copy blocks when it is seen to: cudaMemcpyAsync does so too with pageable memory. Without its record
            // the name has to do.
            const auto copy = copies.find(call.correlation);
            const bool asynchronous = facts.string(row.nameId).find("Async") != std::string_view::npos;
            call.waits = copy != copies.end() ? call.endNs >= copy->second->endNs : !asynchronous;
            call.pageableCopy =
                copy != copies.end() && copy->second->pageable && copy->second->bytes > MemoryTask::kStagedBytes;
            call.copyToDevice = copy != copies.end() && copy->second->toDevice;
        }
        // PyTorch's copy_() ends with cudaStreamSynchronize where non_blocking is left out. A wait for an event or the
        // whole device is the program's own, whatever was copied before.
        if (call.submits())
            lastToDevice[call.threadId] = call.copyToDevice;
        else if (row.kind == store::ApiKind::synchronize &&
                 facts.string(row.nameId).find("StreamSynchronize") != std::string_view::npos)
            call.copyToDevice = lastToDevice[call.threadId];
        events.hostCalls.push_back(call);
    });
}

void readWaits(store::TraceReader& trace, int rank, RankEvents& events) {
    trace.forEach<store::CudaEvent>(rank, [&](const store::CudaEvent& row) {
        events.eventRecords.push_back({correlationOf(row.correlationId), row.eventId, row.streamId});
    });
    trace.forEach<store::Synchronization>(rank, [&](const store::Synchronization& row) {
        using Kind = SynchronizationRecord::Kind;
        const Kind kind = row.kind >= 1 && row.kind <= 4 ? static_cast<Kind>(row.kind) : Kind::unknown;
        events.synchronizations.push_back(
            {correlationOf(row.correlationId), row.eventId.value_or(-1), row.streamId.value_or(0), kind});
    });
}

void readRanges(store::TraceReader& trace, const TraceFacts& facts, int rank, RankEvents& events) {
    std::unordered_map<int32_t, bool> loadsData;
    trace.forEach<store::NvtxRange>(rank, [&](const store::NvtxRange& row) {
        if (!row.threadId || row.durNs.value_or(0) <= 0)
            return;  // marks, and what a profiler shows on the device's side
        const auto [known, isNew] = loadsData.try_emplace(row.nameId, false);
        if (isNew) known->second = namesDataLoading(facts.string(row.nameId));
        const std::string_view domain = facts.string(row.domainId.value_or(0));
        const bool isOperation = domain == store::kOperatorDomain || domain == store::kPythonDomain;
        (isOperation ? events.operations : events.ranges)
            .push_back({row.startNs, row.startNs + *row.durNs, row.nameId, *row.threadId, known->second, row.id,
                        row.payload.value_or(-1)});
    });
    events.operationsRecorded = facts.meta.count("host_operations") != 0;
    events.stepsBeginOnHost = facts.stepSource.starts_with("nvtx") || facts.stepSource == "updates";
}

/// Splits a name into lower-case words: at anything but letters, and where a capital follows a small letter
/// (DataLoader: data, loader).
std::vector<std::string> wordsOf(std::string_view name) {
    std::vector<std::string> words(1);
    bool afterSmall = false;
    for (const char raw : name) {
        const auto c = static_cast<unsigned char>(raw);
        if (!std::isalpha(c) || (std::isupper(c) && afterSmall)) words.emplace_back();
        afterSmall = std::islower(c) != 0;
        if (std::isalpha(c)) words.back() += static_cast<char>(std::tolower(c));
    }
    std::erase_if(words, [](const std::string& word) { return word.empty(); });
    return words;
}

constexpr double kLostShare = 0.02;  // of a step's launches: one that failed leaves no record either
constexpr int kFewestLost = 3;

struct Count {
    int submitted = 0, lost = 0;
    bool lossy() const { return lost >= kFewestLost && lost > kLostShare * submitted; }
};

std::vector<NetworkSend> readNetworkSends(store::TraceReader& trace, int rank) {
    std::vector<NetworkSend> sends;
    if (trace.extent<store::ProxyOp>(rank).empty()) return sends;
    std::map<std::pair<int64_t, int32_t>, size_t> places;
    trace.forEach<store::ProxyOp>(rank, [&](const store::ProxyOp& row) {
        if (!row.isSend || !row.communicatorId || !row.callId || row.onBehalfOf || row.bytes <= 0) return;
        const auto [place, isNew] = places.try_emplace({*row.callId, row.peer}, sends.size());
        if (isNew) sends.push_back({*row.communicatorId, *row.callId, row.peer, 0, 0, 0});
        NetworkSend& send = sends[place->second];
        send.bytes += row.bytes;
        if (row.networkWaitNs < send.networkNs) return;
        send.networkNs = row.networkWaitNs;
        send.rowId = row.id;
    });
    return sends;
}

template <typename Row>
std::vector<Row> rowsOf(store::TraceReader& trace, int rank) {
    std::vector<Row> rows;
    if (trace.extent<Row>(rank).empty()) return rows;  // most recordings have none, and older ones not the table
    trace.forEach<Row>(rank, [&rows](const Row& row) { rows.push_back(row); });
    return rows;
}

}  // namespace

RankEvents readRankEvents(store::TraceReader& trace, const TraceFacts& facts, int rank) {
    RankEvents events;
    events.rank = rank;
    readKernels(trace, rank, events);
    readMemoryTasks(trace, rank, events);
    joinCalls(trace, facts, rank, events);
    events.networkSends = readNetworkSends(trace, rank);
    readHostCalls(trace, facts, rank, events);
    readRanges(trace, facts, rank, events);
    readWaits(trace, rank, events);
    events.kernelSpans = rowsOf<store::KernelSpan>(trace, rank);
    events.kernelSummaries = rowsOf<store::KernelSummary>(trace, rank);
    findReadyTimes(events);
    return events;
}

bool namesDataLoading(std::string_view name) {
    constexpr std::string_view kWhat[] = {"data", "batch", "input", "inputs", "batches", "sample", "samples"};
    constexpr std::string_view kHow[] = {"load", "loader",  "loading", "next",     "get",  "fetch", "prefetch",
                                         "read", "reading", "wait",    "pipeline", "time", "iter",  "host"};
    constexpr std::string_view kWhole[] = {"dataloader", "dataloading", "dataload",
                                           "getbatch",   "nextbatch",   "loadbatch"};
    const std::vector<std::string> words = wordsOf(name);
    if (std::ranges::any_of(words, [&](const std::string& word) { return text::contains(kWhole, word); })) return true;
    if (words.size() == 1) return text::contains(kWhat, words[0]);
    for (size_t i = 1; i < words.size(); ++i) {
        const bool forward = text::contains(kWhat, words[i - 1]) && text::contains(kHow, words[i]);
        const bool backward = text::contains(kHow, words[i - 1]) && text::contains(kWhat, words[i]);
        if (forward || backward) return true;
    }
    return false;
}

std::vector<int> stepsWithLostRecords(const RankEvents& events, const RankFacts& facts) {
    std::unordered_set<int64_t> recorded;
    for (const ComputeTask& task : events.compute) recorded.insert(task.correlation);
    for (const CommTask& task : events.communication) recorded.insert(task.correlation);
    for (const MemoryTask& task : events.memory) recorded.insert(task.correlation);
    std::vector<Count> counts(facts.steps.size());
    Count all;
    for (const HostCall& call : events.hostCalls) {
        // Copies and sets of nothing leave no record although nothing is lost. A lost buffer takes kernels with it.
        if (call.kind != store::ApiKind::launch && call.kind != store::ApiKind::graphLaunch) continue;
        const bool lost = call.correlation < 0 || recorded.count(call.correlation) == 0;
        ++all.submitted;
        all.lost += lost;
        const StepWindow* step = stepAt(facts.steps, call.startNs);
        if (step == nullptr) continue;
        Count& count = counts[static_cast<size_t>(step - facts.steps.data())];
        ++count.submitted;
        count.lost += lost;
    }
    std::vector<int> steps;
    // Most without a record: the trace does not tell launches' correlation, unless it is known where records end.
    if (all.lost * 2 > all.submitted && !facts.cuptiTaken) return steps;
    for (size_t i = 0; i < counts.size(); ++i)
        if (counts[i].lossy() && !facts.steps[i].warmUp) steps.push_back(facts.steps[i].step);
    return steps;
}

}  // namespace rankscope::facts
