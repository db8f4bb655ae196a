// SPDX-License-Identifier: Apache-2.0
// NCCL's calls that make and end communicators. They are recorded outside the capture range too: later calls refer to
// them.
#include <unistd.h>

#include "injector/export.h"
#include "injector/hooks/nccl_call.h"
#include "injector/real_symbol.h"
#include "injector/record/string_table.h"

using namespace rankscope::injector;

#define RANKSCOPE_REAL(function)                                                                           \
    static constinit RealSymbol<decltype(&function)> realSymbol;                                           \
    void* const caller = __builtin_return_address(0);                                                      \
    const auto real = realSymbol.get(#function, "libnccl.so", reinterpret_cast<void*>(&function), caller); \
    if (__builtin_expect(real == nullptr, 0)) return kNcclSystemError

namespace {

/// Runs the real call as the job's, ready to hear NCCL's own hash.
template <typename Call>
int callThrough(Call call) noexcept {
    t_thread.toldCommHash = 0;
    RecursionGuard guard;
    return call();
}

/// Blocking communicators return success, non-blocking ones "in progress" (7); both have a handle by then.
bool isMade(int result, const NcclComm* comm) noexcept {
    return (result == kNcclSuccess || result == 7) && comm != nullptr && *comm != nullptr;
}

void made(NcclComm comm, uint64_t hash, int rank, int nRanks, void* caller, int device = -1) noexcept {
    Communicator communicator;
    communicator.handle = reinterpret_cast<uint64_t>(comm);
    communicator.hash = hash;
    communicator.hashSource = hash == 0 ? HashSource::unknown : HashSource::uniqueId;
    communicator.rank = rank;
    communicator.nRanks = nRanks;
    communicator.device = device;
    recordCommunicator(communicator, caller);
}

uint32_t nextSplit(NcclComm parent) noexcept {
    return g_communicators.nextSplit(reinterpret_cast<uint64_t>(parent));
}

void madeFrom(NcclComm parent, NcclComm child, int color, int key, uint64_t salt, void* caller) noexcept {
    Communicator communicator;
    Communicator parents;
    if (g_communicators.get(reinterpret_cast<uint64_t>(parent), parents)) {
        communicator.parent = parents.index;
        // All members split the same parent with the same colour. Splits of one parent in a row have different salts.
        const uint64_t parts[3] = {parents.hash, static_cast<uint64_t>(static_cast<uint32_t>(color)), salt};
        communicator.hash = stringId(reinterpret_cast<const char*>(parts), sizeof parts);
        communicator.hashSource = HashSource::uniqueId;
    }
    communicator.handle = reinterpret_cast<uint64_t>(child);
    communicator.splitColor = color;
    communicator.splitKey = key;
    recordCommunicator(communicator, caller);
}

}  // namespace

RANKSCOPE_EXPORT int ncclCommInitRank(NcclComm* comm, int nRanks, NcclUniqueId id, int rank) {
    RANKSCOPE_REAL(ncclCommInitRank);
    if (!isOuterNcclCall()) return real(comm, nRanks, id, rank);
    const int result = callThrough([&] { return real(comm, nRanks, id, rank); });
    if (isMade(result, comm)) made(*comm, stringId(id.internal, sizeof id.internal), rank, nRanks, caller);
    return result;
}

RANKSCOPE_EXPORT int ncclCommInitRankConfig(NcclComm* comm, int nRanks, NcclUniqueId id, int rank, NcclConfig* config) {
    RANKSCOPE_REAL(ncclCommInitRankConfig);
    if (!isOuterNcclCall()) return real(comm, nRanks, id, rank, config);
    const int result = callThrough([&] { return real(comm, nRanks, id, rank, config); });
    if (isMade(result, comm)) made(*comm, stringId(id.internal, sizeof id.internal), rank, nRanks, caller);
    return result;
}

RANKSCOPE_EXPORT int ncclCommInitRankScalable(NcclComm* comm, int nRanks, int rank, int nIds, NcclUniqueId* ids,
                                              NcclConfig* config) {
    RANKSCOPE_REAL(ncclCommInitRankScalable);
    if (!isOuterNcclCall()) return real(comm, nRanks, rank, nIds, ids, config);
    const int result = callThrough([&] { return real(comm, nRanks, rank, nIds, ids, config); });
    if (isMade(result, comm) && ids != nullptr && nIds > 0)
        made(*comm, stringId(ids[0].internal, sizeof ids[0].internal), rank, nRanks, caller);
    return result;
}

RANKSCOPE_EXPORT int ncclCommInitAll(NcclComm* comms, int nDevices, const int* devices) {
    RANKSCOPE_REAL(ncclCommInitAll);
    if (!isOuterNcclCall()) return real(comms, nDevices, devices);
    const int result = callThrough([&] { return real(comms, nDevices, devices); });
    if (!isMade(result, comms)) return result;
    // All members are in this process, so an identity that only this process can make is enough.
    const uint64_t parts[3] = {static_cast<uint64_t>(getpid()), static_cast<uint64_t>(g_session.now()),
                               reinterpret_cast<uint64_t>(comms[0])};
    const uint64_t hash = stringId(reinterpret_cast<const char*>(parts), sizeof parts);
    t_thread.toldCommHash = 0;  // of one member of many
    for (int i = 0; i < nDevices; ++i) made(comms[i], hash, i, nDevices, caller, devices == nullptr ? i : devices[i]);
    return result;
}

RANKSCOPE_EXPORT int ncclCommSplit(NcclComm comm, int color, int key, NcclComm* child, NcclConfig* config) {
    RANKSCOPE_REAL(ncclCommSplit);
    if (!isOuterNcclCall()) return real(comm, color, key, child, config);
    const int result = callThrough([&] { return real(comm, color, key, child, config); });
    if (color != kNcclSplitNoColor && isMade(result, child))
        madeFrom(comm, *child, color, key, nextSplit(comm), caller);
    else if (result == kNcclSuccess)
        nextSplit(comm);
    return result;
}

RANKSCOPE_EXPORT int ncclCommShrink(NcclComm comm, int* excluded, int nExcluded, NcclComm* child, NcclConfig* config,
                                    int flags) {
    RANKSCOPE_REAL(ncclCommShrink);
    if (!isOuterNcclCall()) return real(comm, excluded, nExcluded, child, config, flags);
    const int result = callThrough([&] { return real(comm, excluded, nExcluded, child, config, flags); });
    if (isMade(result, child)) madeFrom(comm, *child, 0, 0, nextSplit(comm), caller);
    return result;
}

// NCCL 2.29. Old ranks pass the communicator and rank -1, new ones no communicator and their rank; only some know the
// unique id, so that the identity is what NCCL tells itself.
RANKSCOPE_EXPORT int ncclCommGrow(NcclComm comm, int nRanks, const NcclUniqueId* id, int rank, NcclComm* grown,
                                  NcclConfig* config) {
    RANKSCOPE_REAL(ncclCommGrow);
    if (!isOuterNcclCall()) return real(comm, nRanks, id, rank, grown, config);
    const int result = callThrough([&] { return real(comm, nRanks, id, rank, grown, config); });
    if (isMade(result, grown)) made(*grown, 0, rank, nRanks, caller);
    return result;
}

RANKSCOPE_EXPORT int ncclCommFinalize(NcclComm comm) {
    RANKSCOPE_REAL(ncclCommFinalize);
    if (!isOuterNcclCall()) return real(comm);
    const int result = callThrough([&] { return real(comm); });
    recordCommunicatorEnd(comm, 3);
    return result;
}

// The record comes before the call: once it returned, another thread may get the same handle.
RANKSCOPE_EXPORT int ncclCommDestroy(NcclComm comm) {
    RANKSCOPE_REAL(ncclCommDestroy);
    if (!isOuterNcclCall()) return real(comm);
    recordCommunicatorEnd(comm, 1);
    return callThrough([&] { return real(comm); });
}

RANKSCOPE_EXPORT int ncclCommAbort(NcclComm comm) {
    RANKSCOPE_REAL(ncclCommAbort);
    if (!isOuterNcclCall()) return real(comm);
    recordCommunicatorEnd(comm, 2);
    return callThrough([&] { return real(comm); });
}
