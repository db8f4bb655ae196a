// SPDX-License-Identifier: Apache-2.0
// The collectives and point-to-point calls of NCCL 2.18 to 2.30. Each hook stamps, calls through and pushes; nothing else.
#include "injector/export.h"
#include "injector/hooks/nccl_call.h"
#include "injector/real_symbol.h"

using namespace rankscope::injector;
using rankscope::capture::NcclOp;

// Looks the real function up, or returns NCCL's own kind of error when there is none.
#define RANKSCOPE_REAL(function)                                                                                  \
    static constinit RealSymbol<decltype(&function)> realSymbol(#function, "libnccl.so");                         \
    const auto real = realSymbol.get(reinterpret_cast<void*>(&function), __builtin_return_address(0));            \
    if (__builtin_expect(real == nullptr, 0)) return kNcclSystemError

RANKSCOPE_EXPORT int ncclAllReduce(const void* send, void* recv, size_t count, int type, int op, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclAllReduce);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, op, comm, stream);
    return recordNcclCall({NcclOp::allReduce, count, type, op, -1, comm, stream}, [&] { return real(send, recv, count, type, op, comm, stream); });
}

RANKSCOPE_EXPORT int ncclBroadcast(const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclBroadcast);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, root, comm, stream);
    return recordNcclCall({NcclOp::broadcast, count, type, -1, root, comm, stream}, [&] { return real(send, recv, count, type, root, comm, stream); });
}

RANKSCOPE_EXPORT int ncclBcast(void* buffer, size_t count, int type, int root, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclBcast);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(buffer, count, type, root, comm, stream);
    return recordNcclCall({NcclOp::broadcast, count, type, -1, root, comm, stream}, [&] { return real(buffer, count, type, root, comm, stream); });
}

RANKSCOPE_EXPORT int ncclReduce(const void* send, void* recv, size_t count, int type, int op, int root, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclReduce);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, op, root, comm, stream);
    return recordNcclCall({NcclOp::reduce, count, type, op, root, comm, stream}, [&] { return real(send, recv, count, type, op, root, comm, stream); });
}

RANKSCOPE_EXPORT int ncclAllGather(const void* send, void* recv, size_t count, int type, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclAllGather);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, comm, stream);
    return recordNcclCall({NcclOp::allGather, count, type, -1, -1, comm, stream}, [&] { return real(send, recv, count, type, comm, stream); });
}

RANKSCOPE_EXPORT int ncclReduceScatter(const void* send, void* recv, size_t count, int type, int op, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclReduceScatter);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, op, comm, stream);
    return recordNcclCall({NcclOp::reduceScatter, count, type, op, -1, comm, stream}, [&] { return real(send, recv, count, type, op, comm, stream); });
}

RANKSCOPE_EXPORT int ncclAlltoAll(const void* send, void* recv, size_t count, int type, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclAlltoAll);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, comm, stream);
    return recordNcclCall({NcclOp::allToAll, count, type, -1, -1, comm, stream}, [&] { return real(send, recv, count, type, comm, stream); });
}

RANKSCOPE_EXPORT int ncclGather(const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclGather);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, root, comm, stream);
    return recordNcclCall({NcclOp::gather, count, type, -1, root, comm, stream}, [&] { return real(send, recv, count, type, root, comm, stream); });
}

RANKSCOPE_EXPORT int ncclScatter(const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclScatter);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, recv, count, type, root, comm, stream);
    return recordNcclCall({NcclOp::scatter, count, type, -1, root, comm, stream}, [&] { return real(send, recv, count, type, root, comm, stream); });
}

RANKSCOPE_EXPORT int ncclSend(const void* send, size_t count, int type, int peer, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclSend);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(send, count, type, peer, comm, stream);
    return recordNcclCall({NcclOp::send, count, type, -1, peer, comm, stream}, [&] { return real(send, count, type, peer, comm, stream); });
}

RANKSCOPE_EXPORT int ncclRecv(void* recv, size_t count, int type, int peer, NcclComm comm, NcclStream stream) {
    RANKSCOPE_REAL(ncclRecv);
    if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(recv, count, type, peer, comm, stream);
    return recordNcclCall({NcclOp::recv, count, type, -1, peer, comm, stream}, [&] { return real(recv, count, type, peer, comm, stream); });
}

RANKSCOPE_EXPORT int ncclGroupStart() {
    RANKSCOPE_REAL(ncclGroupStart);
    if (!isOuterNcclCall()) return real();
    RecursionGuard guard;
    ThreadState& thread = t_thread;
    if (thread.groupDepth++ == 0) {
        thread.groupId = g_session.nextGroupId();
        thread.groupCalls = 0;
        thread.groupStartNs = g_session.now();
    }
    return real();
}

RANKSCOPE_EXPORT int ncclGroupEnd() {
    RANKSCOPE_REAL(ncclGroupEnd);
    if (!isOuterNcclCall() || t_thread.groupDepth == 0) return real();
    ThreadState& thread = t_thread;
    const bool recorded = thread.groupCalls > 0 && g_session.isRecording(Cause::gpu);
    RecursionGuard guard;
    if (thread.groupDepth > 1) {
        --thread.groupDepth;
        return real();
    }
    rankscope::capture::NcclGroupRecord record{};
    record.callId = g_session.nextCallId();
    if (recorded) cupti::pushCallId(record.callId);
    const int result = real();
    record.endNs = g_session.now();
    if (recorded) cupti::popCallId();
    thread.groupDepth = 0;
    completeCommunicators(__builtin_return_address(0));
    if (recorded) {
        record.head = {rankscope::capture::RecordType::ncclGroup, 1, static_cast<uint16_t>(thread.groupCalls > 0xffff ? 0xffff : thread.groupCalls)};
        record.groupId = thread.groupId;
        record.startNs = thread.groupStartNs;
        g_session.push(record, record.endNs);
    }
    return result;
}
