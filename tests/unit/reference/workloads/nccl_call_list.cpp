// SPDX-License-Identifier: Apache-2.0
// Preloaded in front of NCCL: appends one line per call, "op bytes", to the file NCCL_CALL_LIST.<RANK>, and calls
// through.
#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

size_t bytesOf(size_t count, ncclDataType_t type) {
    return count * (type == ncclFloat32 ? 4 : 2);
}

void note(const char* op, size_t count, ncclDataType_t type) {
    static FILE* const list = [] {
        const char* path = getenv("NCCL_CALL_LIST");
        const char* rank = getenv("RANK");
        return path && rank ? fopen((std::string(path) + "." + rank).c_str(), "w") : nullptr;
    }();
    if (!list) return;
    fprintf(list, "%s %zu\n", op, bytesOf(count, type));
    fflush(list);
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream) {
    note("all_reduce", count, type);
    return next<decltype(&ncclAllReduce)>("ncclAllReduce")(in, out, count, type, op, comm, stream);
}
EXPORTED ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm,
                                    cudaStream_t stream) {
    note("all_gather", count, type);
    return next<decltype(&ncclAllGather)>("ncclAllGather")(in, out, count, type, comm, stream);
}
EXPORTED ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                        ncclComm_t comm, cudaStream_t stream) {
    note("reduce_scatter", count, type);
    return next<decltype(&ncclReduceScatter)>("ncclReduceScatter")(in, out, count, type, op, comm, stream);
}
EXPORTED ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                               cudaStream_t stream) {
    note("send", count, type);
    return next<decltype(&ncclSend)>("ncclSend")(in, count, type, peer, comm, stream);
}
EXPORTED ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                               cudaStream_t stream) {
    note("recv", count, type);
    return next<decltype(&ncclRecv)>("ncclRecv")(out, count, type, peer, comm, stream);
}
