// SPDX-License-Identifier: Apache-2.0
#include "injector/hooks/communicator_recorder.h"

#include "injector/real_symbol.h"
#include "injector/session/session.h"
#include "injector/text.h"

namespace rankscope::injector {

constinit Communicators g_communicators;

namespace {

std::atomic<int32_t> g_largest{0};
std::atomic<int32_t> g_rankOfLargest{-1};
std::atomic<bool> g_versionTold{false};

void ask(const char* question, uint64_t handle, void* caller, int32_t& answer) noexcept {
    if (answer >= 0) return;
    using Question = int (*)(void* comm, int* answer);
    const auto function = reinterpret_cast<Question>(findRealSymbol(question, "libnccl.so", nullptr, caller));
    int value = -1;
    if (function != nullptr && function(reinterpret_cast<void*>(handle), &value) == kNcclSuccess && value >= 0)
        answer = value;
}

/// Once, when the first communicator is there: NCCL is loaded and initialised then.
void tellVersion(void* caller) noexcept {
    if (g_versionTold.exchange(true, std::memory_order_relaxed)) return;
    using Question = int (*)(int* version);
    const auto function = reinterpret_cast<Question>(findRealSymbol("ncclGetVersion", "libnccl.so", nullptr, caller));
    int version = 0;
    if (function == nullptr || function(&version) != kNcclSuccess || version <= 0) return;
    FixedText<16> text;
    text.append(int64_t{version});
    g_session.tellMetadata("nccl_version", text.c_str());
}

void complete(Communicator& communicator, void* caller) noexcept {
    ask("ncclCommCount", communicator.handle, caller, communicator.nRanks);
    ask("ncclCommUserRank", communicator.handle, caller, communicator.rank);
    ask("ncclCommCuDevice", communicator.handle, caller, communicator.device);
}

void write(const Communicator& communicator) noexcept {
    capture::CommunicatorRecord record{};
    record.head = {capture::RecordType::communicator, 2, static_cast<uint16_t>(communicator.hashSource)};
    record.index = communicator.index;
    record.hash = communicator.hash;
    record.handle = communicator.handle;
    record.timeNs = g_session.now();
    record.rank = communicator.rank;
    record.nRanks = communicator.nRanks;
    record.device = communicator.device;
    record.parent = communicator.parent;
    record.splitColor = communicator.splitColor;
    record.splitKey = communicator.splitKey;
    g_session.push(record, record.timeNs);
}

/// The largest communicator is the job's, unless the launcher knows of more ranks than it has.
void correctIdentity(const Communicator& communicator) noexcept {
    if (communicator.rank < 0 || communicator.nRanks < 0) return;
    if (communicator.nRanks < g_session.identity().worldSize) return;
    const int32_t largest = g_largest.load(std::memory_order_relaxed);
    if (communicator.nRanks < largest) return;
    const bool drivesSeveral =
        communicator.nRanks == largest && g_rankOfLargest.load(std::memory_order_relaxed) != communicator.rank;
    g_largest.store(communicator.nRanks, std::memory_order_relaxed);
    if (!drivesSeveral) g_rankOfLargest.store(communicator.rank, std::memory_order_relaxed);
    capture::RankIdentityRecord record{};
    record.head = {capture::RecordType::rankIdentity, 1, 0};
    record.rank = communicator.rank;
    record.worldSize = communicator.nRanks;
    record.localRank = g_session.identity().localRank;
    record.timeNs = g_session.now();
    record.device = drivesSeveral ? communicator.device : -1;
    g_session.push(record, record.timeNs);
}

}  // namespace

void recordCommunicator(Communicator communicator, void* caller) noexcept {
    ErrnoKeeper errnoKeeper;
    RecursionGuard guard;
    if (communicator.handle == 0) return;
    tellVersion(caller);
    communicator.thread = t_thread.threadIndex;
    if (t_thread.groupDepth == 0)
        complete(communicator, caller);
    else
        ++t_thread.newComms;
    if (t_thread.toldCommHash != 0) {
        communicator.hash = t_thread.toldCommHash;
        communicator.hashSource = HashSource::nccl;
    }
    if (!g_communicators.add(communicator)) {
        g_session.sink().countLoss(capture::Source::hooks, capture::LossKind::unknown, 1, g_session.now());
        return;
    }
    write(communicator);
    correctIdentity(communicator);
}

void completeCommunicators(void* caller) noexcept {
    if (t_thread.newComms == 0) return;
    ErrnoKeeper errnoKeeper;
    RecursionGuard guard;
    t_thread.newComms = 0;
    uint32_t from = 0;
    Communicator communicator;
    while (g_communicators.nextIncomplete(t_thread.threadIndex, from, communicator)) {
        complete(communicator, caller);
        g_communicators.update(communicator);
        write(communicator);
        correctIdentity(communicator);
    }
}

void learnHash(uint64_t handle) noexcept {
    ErrnoKeeper errnoKeeper;
    Communicator communicator;
    if (!g_communicators.get(handle, communicator) || communicator.hashSource == HashSource::nccl) return;
    communicator.hash = t_thread.toldCommHash;
    communicator.hashSource = HashSource::nccl;
    g_communicators.update(communicator);
    write(communicator);
}

void recordCommunicatorEnd(NcclComm comm, uint16_t how) noexcept {
    ErrnoKeeper errnoKeeper;
    const auto handle = reinterpret_cast<uint64_t>(comm);
    capture::CommunicatorEndRecord record{};
    record.head = {capture::RecordType::communicatorEnd, 1, how};
    // After finalize the handle lives on until destroy.
    record.index = how == 3 ? g_communicators.find(handle) : g_communicators.remove(handle);
    if (record.index == 0) return;
    record.timeNs = g_session.now();
    g_session.push(record, record.timeNs);
}

}  // namespace rankscope::injector
