// SPDX-License-Identifier: Apache-2.0
// ncclAllReduce and its sisters: check the arguments, describe the movement, hand over.
#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/engine/coll_config.h"
#include "reference/vgpu/nccl/nccl_nvtx.h"
#include "reference/vgpu/nccl/nccl_ops.h"

using namespace rankscope::vgpu;

namespace {

constexpr int kCustomOps = ncclNumOps;

struct Buffers {
    const void* send;
    void* recv;
};

uint64_t hashOf(ncclComm_t comm) {
    return comm ? comm->hash : 0;
}

ncclResult_t collective(const char* function, TransferKind kind, Buffers buffers, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    injectOnce();
    size_t element = elementBytes(type);
    if (!comm || element == 0 || root < 0 || root >= comm->size) return ncclInvalidArgument;
    NcclCall call{};
    call.function = function;
    call.comm = comm;
    call.stream = stream;
    call.count = count;
    call.type = type;
    call.op = op;
    call.userTag = CallSettings::userTag();
    call.data.kind = kind;
    call.data.send = buffers.send;
    call.data.recv = buffers.recv;
    call.data.chunkBytes = count * element;
    call.data.root = static_cast<uint32_t>(root);
    call.data.reduction = {type, op, 1};
    if (op >= kCustomOps) {
        auto custom = comm->customOps.find(op);
        if (custom == comm->customOps.end()) return ncclInvalidArgument;
        call.data.reduction = custom->second;
    }
    bool chunked = kind == TransferKind::allGather || kind == TransferKind::reduceScatter;
    call.bytes = static_cast<double>(count * element) * (chunked ? comm->size : 1);
    return issue(std::move(call));
}

ncclResult_t message(bool isSend, const void* send, void* recv, size_t count, ncclDataType_t type, int peer,
                     ncclComm_t comm, cudaStream_t stream) {
    injectOnce();
    size_t element = elementBytes(type);
    if (!comm || element == 0 || peer < 0 || peer >= comm->size) return ncclInvalidArgument;
    NcclCall call{};
    call.function = isSend ? "Send" : "Recv";
    call.comm = comm;
    call.stream = stream;
    call.count = count;
    call.type = type;
    call.userTag = CallSettings::userTag();
    call.data.kind = TransferKind::p2p;
    call.data.isSend = isSend;
    call.data.peer = static_cast<uint32_t>(peer);
    call.data.send = send;
    call.data.recv = recv;
    call.data.chunkBytes = count * element;
    call.bytes = static_cast<double>(count * element);
    return issue(std::move(call));
}

ncclResult_t allReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                       cudaStream_t stream) {
    NcclRange range("ncclAllReduce", NcclSchema::allReduce, hashOf(comm), count * elementBytes(type), op);
    return collective("AllReduce", TransferKind::allReduce, {send, recv}, count, type, op, 0, comm, stream);
}

ncclResult_t reduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                    ncclComm_t comm, cudaStream_t stream) {
    NcclRange range("ncclReduce", NcclSchema::reduce, hashOf(comm), count * elementBytes(type), root, op);
    return collective("Reduce", TransferKind::reduce, {send, recv}, count, type, op, root, comm, stream);
}

ncclResult_t broadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
    NcclRange range("ncclBroadcast", NcclSchema::broadcast, hashOf(comm), count * elementBytes(type), root);
    return collective("Broadcast", TransferKind::broadcast, {send, recv}, count, type, ncclSum, root, comm, stream);
}

ncclResult_t allGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                       cudaStream_t stream) {
    NcclRange range("ncclAllGather", NcclSchema::allGather, hashOf(comm), count * elementBytes(type));
    return collective("AllGather", TransferKind::allGather, {send, recv}, count, type, ncclSum, 0, comm, stream);
}

ncclResult_t reduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    NcclRange range("ncclReduceScatter", NcclSchema::reduceScatter, hashOf(comm), count * elementBytes(type), op);
    return collective("ReduceScatter", TransferKind::reduceScatter, {send, recv}, count, type, op, 0, comm, stream);
}

// Like NCCL's, these three are made of sends and receives.
ncclResult_t alltoAll(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                      cudaStream_t stream) {
    NcclRange range("ncclAlltoAll", NcclSchema::allToAll, hashOf(comm), count * elementBytes(type));
    size_t bytes = count * elementBytes(type);
    if (!comm || bytes == 0) return comm && elementBytes(type) ? ncclSuccess : ncclInvalidArgument;
    startGroup();
    for (int peer = 0; peer < comm->size; peer++) {
        auto offset = static_cast<size_t>(peer) * bytes;
        message(true, static_cast<const char*>(send) + offset, nullptr, count, type, peer, comm, stream);
        message(false, nullptr, static_cast<char*>(recv) + offset, count, type, peer, comm, stream);
    }
    return endGroup();
}

ncclResult_t gather(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                    cudaStream_t stream) {
    NcclRange range("ncclGather", NcclSchema::gather, hashOf(comm), count * elementBytes(type), root);
    size_t bytes = count * elementBytes(type);
    if (!comm || root < 0 || root >= comm->size || elementBytes(type) == 0) return ncclInvalidArgument;
    startGroup();
    message(true, send, nullptr, count, type, root, comm, stream);
    for (int peer = 0; comm->rank == root && peer < comm->size; peer++)
        message(false, nullptr, static_cast<char*>(recv) + static_cast<size_t>(peer) * bytes, count, type, peer, comm,
                stream);
    return endGroup();
}

ncclResult_t scatter(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                     cudaStream_t stream) {
    NcclRange range("ncclScatter", NcclSchema::scatter, hashOf(comm), count * elementBytes(type), root);
    size_t bytes = count * elementBytes(type);
    if (!comm || root < 0 || root >= comm->size || elementBytes(type) == 0) return ncclInvalidArgument;
    startGroup();
    for (int peer = 0; comm->rank == root && peer < comm->size; peer++)
        message(true, static_cast<const char*>(send) + static_cast<size_t>(peer) * bytes, nullptr, count, type, peer,
                comm, stream);
    message(false, nullptr, recv, count, type, root, comm, stream);
    return endGroup();
}

}  // namespace

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    return allReduce(send, recv, count, type, op, comm, stream);
}
ncclResult_t ncclReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
    return reduce(send, recv, count, type, op, root, comm, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
    return broadcast(send, recv, count, type, root, comm, stream);
}
ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    return allGather(send, recv, count, type, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    return reduceScatter(send, recv, count, type, op, comm, stream);
}
ncclResult_t ncclAlltoAll(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
    return alltoAll(send, recv, count, type, comm, stream);
}
ncclResult_t ncclGather(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
    return gather(send, recv, count, type, root, comm, stream);
}
ncclResult_t ncclScatter(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
    return scatter(send, recv, count, type, root, comm, stream);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
    NcclRange range("ncclBroadcast", NcclSchema::broadcast, hashOf(comm), count * elementBytes(type), root);
    return collective("Broadcast", TransferKind::broadcast, {buffer, buffer}, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    NcclRange range("ncclSend", NcclSchema::send, hashOf(comm), count * elementBytes(type), peer);
    return message(true, send, nullptr, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    NcclRange range("ncclRecv", NcclSchema::recv, hashOf(comm), count * elementBytes(type), peer);
    return message(false, nullptr, recv, count, type, peer, comm, stream);
}

// NCCL 2.31: the same with settings for one call. An older nccl.h does not declare them.
ncclResult_t ncclAllReduceConfig(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                 ncclComm_t comm, cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? allReduce(send, recv, count, type, op, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclReduceConfig(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                              ncclComm_t comm, cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? reduce(send, recv, count, type, op, root, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclBroadcastConfig(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                                 ncclComm_t comm, cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? broadcast(send, recv, count, type, root, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclAllGatherConfig(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                                 cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? allGather(send, recv, count, type, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclReduceScatterConfig(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                     ncclComm_t comm, cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? reduceScatter(send, recv, count, type, op, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclAlltoAllConfig(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                                cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? alltoAll(send, recv, count, type, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclGatherConfig(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                              ncclComm_t comm, cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? gather(send, recv, count, type, root, comm, stream) : ncclInvalidArgument;
}
ncclResult_t ncclScatterConfig(const void* send, void* recv, size_t count, ncclDataType_t type, int root,
                               ncclComm_t comm, cudaStream_t stream, const CollConfig* config) {
    const CallSettings settings(config);
    return settings.valid() ? scatter(send, recv, count, type, root, comm, stream) : ncclInvalidArgument;
}

ncclResult_t ncclGroupStart() {
    injectOnce();
    NcclRange range("ncclGroupStart", NcclSchema::commFinalize);
    return startGroup();
}
ncclResult_t ncclGroupEnd() {
    NcclRange range("ncclGroupEnd", NcclSchema::commFinalize);
    return endGroup();
}
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) {
    return ncclInvalidUsage;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t,
                                      ncclComm_t comm) {
    if (!op || !scalar || !comm || elementBytes(type) == 0) return ncclInvalidArgument;
    double factor = 1;
    switch (type) {  // device memory is host memory here, so the residence makes no difference
        case ncclFloat64:
            factor = *static_cast<const double*>(scalar);
            break;
        case ncclFloat32:
            factor = *static_cast<const float*>(scalar);
            break;
        case ncclInt32:
            factor = *static_cast<const int32_t*>(scalar);
            break;
        default:
            return ncclInvalidArgument;
    }
    int id = kCustomOps + comm->nextCustomOp++;
    comm->customOps[id] = {type, ncclSum, factor};
    *op = static_cast<ncclRedOp_t>(id);
    return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
    if (!comm) return ncclInvalidArgument;
    return comm->customOps.erase(op) ? ncclSuccess : ncclInvalidArgument;
}

}  // extern "C"
