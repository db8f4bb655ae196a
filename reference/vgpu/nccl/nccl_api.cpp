// SPDX-License-Identifier: Apache-2.0
// Life and description of communicators, and the odds and ends of nccl.h.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/nccl/nccl_nvtx.h"
#include "reference/vgpu/nccl/nccl_ops.h"
#include "reference/vgpu/nccl/profiler_plugin.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kDestroyNs = 200'000;

/// Ids are names, not numbers drawn at random: the same job gets the same communicator hashes every time.
void makeId(unsigned char (&id)[128], const char* purpose, uint64_t a, uint64_t b, uint64_t c) {
    std::memset(id, 0, sizeof id);
    std::snprintf(reinterpret_cast<char*>(id), sizeof id, "rankscope-vgpu/%s/%llx/%llx/%llx", purpose,
                  static_cast<unsigned long long>(a), static_cast<unsigned long long>(b),
                  static_cast<unsigned long long>(c));
}

ncclResult_t initRank(ncclComm_t* comm, int size, const ncclUniqueId& id, int rank, int device, const char* name) {
    if (!comm || size < 1 || rank < 0 || rank >= size) return ncclInvalidArgument;
    CommRequest request{};
    std::memcpy(request.id, id.internal, sizeof request.id);
    request.size = size;
    request.rank = rank;
    request.device = device;
    request.result = comm;
    request.name = name ? name : "";
    *comm = nullptr;
    return requestComm(std::move(request));
}

const char* nameIn(const ncclConfig_t* config) {
    return config && config->commName != NCCL_CONFIG_UNDEF_PTR ? config->commName : nullptr;
}

/// Splits after everybody has said which colour it wants: a rendezvous of the parent, then one per colour.
ncclResult_t split(ncclComm_t parent, int color, int key, ncclComm_t* result, const char* name) {
    LocalProcess& process = LocalProcess::instance();
    CommRequest all{};
    uint32_t number = parent->splits++;
    makeId(all.id, "split", parent->hash, number, 0);
    all.size = parent->size;
    all.rank = parent->rank;
    all.device = parent->device;
    all.color = color;
    all.key = key;
    uint32_t meeting = joinComm(process, all, process.clock().ns);
    if (meeting == kNone) return ncclInvalidUsage;
    if (!process.waitForComm(meeting)) return ncclInternalError;
    *result = nullptr;
    if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
    const Arena& arena = process.arena();
    const Member* members = arena.members + arena.comms[meeting].firstMember;
    std::vector<int> group;
    for (int rank = 0; rank < parent->size; rank++)
        if (members[rank].color == color) group.push_back(rank);
    std::stable_sort(group.begin(), group.end(), [&](int a, int b) { return members[a].key < members[b].key; });
    CommRequest mine = all;
    makeId(mine.id, "color", parent->hash, number, static_cast<uint64_t>(color));
    mine.size = static_cast<int>(group.size());
    mine.rank = static_cast<int>(std::find(group.begin(), group.end(), parent->rank) - group.begin());
    mine.result = result;
    mine.name = name ? name : "";
    uint32_t shared = joinComm(process, mine, process.clock().ns);
    return shared == kNone ? ncclInvalidUsage : completeComm(process, mine, shared);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    if (!version) return ncclInvalidArgument;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static std::atomic<uint64_t> count{0};
    if (!id) return ncclInvalidArgument;
    injectOnce();
    LocalProcess& process = LocalProcess::instance();
    process.publish(process.clock());
    uint64_t who = process.rank() >= 0 ? static_cast<uint64_t>(process.rank()) : 0x10000u + process.index();
    unsigned char text[128];
    makeId(text, "id", who, count++, 0);
    std::memcpy(id->internal, text, sizeof text);
    return ncclSuccess;
}

static ncclResult_t initInRange(NcclSchema schema, const char* function, ncclComm_t* comm, int size,
                                const ncclUniqueId& id, int rank, const ncclConfig_t* config) {
    injectOnce();
    NcclRange range(function, schema);
    int device = LocalProcess::instance().clock().device;
    ncclResult_t result = initRank(comm, size, id, rank, device, nameIn(config));
    // Inside a group the communicator only comes to life with the group's end.
    if (comm && *comm) range.setCommunicator((*comm)->hash, size, rank, device);
    return result;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
    return initInRange(NcclSchema::commInitRankConfig, "ncclCommInitRankConfig", comm, size, id, rank, config);
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
    return initInRange(NcclSchema::commInitRank, "ncclCommInitRank", comm, size, id, rank, nullptr);
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int idCount, ncclUniqueId* ids,
                                      ncclConfig_t* config) {
    if (!ids || idCount < 1) return ncclInvalidArgument;
    return initInRange(NcclSchema::commInitRankScalable, "ncclCommInitRankScalable", comm, size, ids[0], rank, config);
}
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
    if (!comms || count < 1) return ncclInvalidArgument;
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    startGroup();
    for (int rank = 0; rank < count; rank++)
        initRank(&comms[rank], count, id, rank, devices ? devices[rank] : rank, nullptr);
    return endGroup();
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* result, ncclConfig_t* config) {
    if (!parent || !result || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) return ncclInvalidArgument;
    if (groupDepth() > 0) return ncclInvalidUsage;
    NcclRange range("ncclCommSplit", NcclSchema::commSplit);
    ncclResult_t status = split(parent, color, key, result, nameIn(config));
    if (const ncclComm* made = *result)
        range.setSplit(made->hash, parent->hash, made->size, made->rank, made->device, color, key);
    return status;
}

ncclResult_t ncclCommShrink(ncclComm_t parent, int* excluded, int excludedCount, ncclComm_t* result,
                            ncclConfig_t* config, int) {
    if (!parent || !result || (excludedCount > 0 && !excluded)) return ncclInvalidArgument;
    // Only the survivors call; they form a group that all of them can name.
    std::vector<int> group;
    for (int rank = 0; rank < parent->size; rank++)
        if (std::find(excluded, excluded + excludedCount, rank) == excluded + excludedCount) group.push_back(rank);
    auto mine = std::find(group.begin(), group.end(), parent->rank);
    if (mine == group.end()) return ncclInvalidArgument;
    LocalProcess& process = LocalProcess::instance();
    CommRequest request{};
    makeId(request.id, "shrink", parent->hash, parent->splits++, group.size());
    request.size = static_cast<int>(group.size());
    request.rank = static_cast<int>(mine - group.begin());
    request.device = parent->device;
    request.result = result;
    if (const char* name = nameIn(config)) request.name = name;
    uint32_t shared = joinComm(process, request, process.clock().ns);
    return shared == kNone ? ncclInvalidUsage : completeComm(process, request, shared);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (!comm) return ncclInvalidArgument;
    comm->finalized = true;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    NcclRange range("ncclCommDestroy", NcclSchema::commDestroy);
    range.setCommunicator(comm->hash, comm->size, comm->rank, comm->device);
    LocalProcess& process = LocalProcess::instance();
    if (!*comm->aborted) waitForCompletion(process, pendingOn(process, *comm));
    process.clock().ns += kDestroyNs;
    process.publish(process.clock());
    leaveComm(process, *comm);
    closeProfiler(*comm);
    comm->tuner.close();
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (!comm) return ncclSuccess;
    NcclRange range("ncclCommAbort", NcclSchema::commAbort);
    range.setCommunicator(comm->hash, comm->size, comm->rank, comm->device);
    LocalProcess& process = LocalProcess::instance();
    abortPending(process, *comm);
    closeProfiler(*comm);
    comm->tuner.close();
    delete comm;
    return ncclSuccess;
}
ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
    if (!comm) return ncclInvalidArgument;
    abortPending(LocalProcess::instance(), *comm);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    if (!comm || !error) return ncclInvalidArgument;
    *error = !comm->finalized && waitsForDeadMember(LocalProcess::instance(), *comm) ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    if (!comm || !count) return ncclInvalidArgument;
    *count = comm->size;
    return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
    if (!comm || !device) return ncclInvalidArgument;
    *device = comm->device;
    return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    if (!comm || !rank) return ncclInvalidArgument;
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
    LocalProcess& process = LocalProcess::instance();
    if (!pointer) return ncclInvalidArgument;
    *pointer = allocateMemory(MemoryKind::device, process.clock().device, bytes,
                              static_cast<uint64_t>(process.cluster().memoryGb * 1e9));
    return *pointer ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* pointer) {
    return !pointer || freeMemory(pointer) ? ncclSuccess : ncclInvalidArgument;
}

// Registration only matters to real transports.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
    if (!comm || !handle) return ncclInvalidArgument;
    *handle = buffer;
    return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
    return comm ? ncclSuccess : ncclInvalidArgument;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buffer, size_t, ncclWindow_t* window, int) {
    if (!comm || !window) return ncclInvalidArgument;
    *window = reinterpret_cast<ncclWindow_t>(buffer);
    return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
    return comm ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** buffer) {
    if (!comm || !buffer) return ncclInvalidArgument;
    *buffer = window;
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
    switch (result) {
        case ncclSuccess:
            return "no error";
        case ncclUnhandledCudaError:
            return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case ncclSystemError:
            return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case ncclInternalError:
            return "internal error - please report this issue to the NCCL developers";
        case ncclInvalidArgument:
            return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case ncclInvalidUsage:
            return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case ncclRemoteError:
            return "remote process exited or there was a network error";
        case ncclInProgress:
            return "NCCL operation in progress";
        default:
            return "unknown result code";
    }
}
const char* ncclGetLastError(ncclComm_t) {
    return "";
}
void ncclResetDebugInit() {}

}  // extern "C"
