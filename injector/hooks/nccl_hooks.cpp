// SPDX-License-Identifier: Apache-2.0
// The collectives and point-to-point calls of NCCL 2.18 to 2.32. Each hook stamps, calls through and pushes; nothing
// else.
#include "injector/export.h"
#include "injector/hooks/hook.h"
#include "injector/hooks/nccl_call.h"
#include "injector/real_symbol.h"

using namespace rankscope::injector;
using rankscope::capture::NcclOp;

// Looks the real function up, or returns NCCL's own kind of error when there is none.
#define RANKSCOPE_REAL(function)                                                                                  \
    static constinit RealSymbol<decltype(&function)> realSymbol;                                                  \
    const auto real =                                                                                             \
        realSymbol.get(#function, "libnccl.so", reinterpret_cast<void*>(&function), __builtin_return_address(0)); \
    if (__builtin_expect(real == nullptr, 0)) return kNcclSystemError

/// A hook: function, operation, its count, type, reduction (-1 none), peer or root (-1 none), (parameters), arguments.
#define RANKSCOPE_NCCL_HOOK(function, operation, elements, elementType, reduction, peerOrRoot, parameters, ...) \
    RANKSCOPE_HOOK(                                                                                             \
        function, "libnccl.so", kNcclSystemError, parameters, (__VA_ARGS__),                                    \
        if (!isOuterNcclCall() || !g_session.isRecording(Cause::gpu)) return real(__VA_ARGS__);                 \
        return recordNcclCall({NcclOp::operation, elements, elementType, reduction, peerOrRoot, comm, stream},  \
                              [&] { return real(__VA_ARGS__); });)

RANKSCOPE_NCCL_HOOK(ncclAllReduce, allReduce, count, type, op, -1,
                    (const void* send, void* recv, size_t count, int type, int op, NcclComm comm, NcclStream stream),
                    send, recv, count, type, op, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclBroadcast, broadcast, count, type, -1, root,
                    (const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream),
                    send, recv, count, type, root, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclBcast, broadcast, count, type, -1, root,
                    (void* buffer, size_t count, int type, int root, NcclComm comm, NcclStream stream), buffer, count,
                    type, root, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclReduce, reduce, count, type, op, root,
                    (const void* send, void* recv, size_t count, int type, int op, int root, NcclComm comm,
                     NcclStream stream),
                    send, recv, count, type, op, root, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclAllGather, allGather, count, type, -1, -1,
                    (const void* send, void* recv, size_t count, int type, NcclComm comm, NcclStream stream), send,
                    recv, count, type, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclReduceScatter, reduceScatter, count, type, op, -1,
                    (const void* send, void* recv, size_t count, int type, int op, NcclComm comm, NcclStream stream),
                    send, recv, count, type, op, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclAlltoAll, allToAll, count, type, -1, -1,
                    (const void* send, void* recv, size_t count, int type, NcclComm comm, NcclStream stream), send,
                    recv, count, type, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclGather, gather, count, type, -1, root,
                    (const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream),
                    send, recv, count, type, root, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclScatter, scatter, count, type, -1, root,
                    (const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream),
                    send, recv, count, type, root, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclSend, send, count, type, -1, peer,
                    (const void* send, size_t count, int type, int peer, NcclComm comm, NcclStream stream), send, count,
                    type, peer, comm, stream);
RANKSCOPE_NCCL_HOOK(ncclRecv, recv, count, type, -1, peer,
                    (void* recv, size_t count, int type, int peer, NcclComm comm, NcclStream stream), recv, count, type,
                    peer, comm, stream);

// NCCL 2.31: each collective once more, with settings for this call alone (nccl.h, ncclCollConfig_t). Null settings are
// the plain call.
RANKSCOPE_NCCL_HOOK(ncclAllReduceConfig, allReduce, count, type, op, -1,
                    (const void* send, void* recv, size_t count, int type, int op, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, op, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclBroadcastConfig, broadcast, count, type, -1, root,
                    (const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, root, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclReduceConfig, reduce, count, type, op, root,
                    (const void* send, void* recv, size_t count, int type, int op, int root, NcclComm comm,
                     NcclStream stream, const NcclCollConfig* config),
                    send, recv, count, type, op, root, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclAllGatherConfig, allGather, count, type, -1, -1,
                    (const void* send, void* recv, size_t count, int type, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclReduceScatterConfig, reduceScatter, count, type, op, -1,
                    (const void* send, void* recv, size_t count, int type, int op, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, op, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclAlltoAllConfig, allToAll, count, type, -1, -1,
                    (const void* send, void* recv, size_t count, int type, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclGatherConfig, gather, count, type, -1, root,
                    (const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, root, comm, stream, config);
RANKSCOPE_NCCL_HOOK(ncclScatterConfig, scatter, count, type, -1, root,
                    (const void* send, void* recv, size_t count, int type, int root, NcclComm comm, NcclStream stream,
                     const NcclCollConfig* config),
                    send, recv, count, type, root, comm, stream, config);

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
        record.head = {rankscope::capture::RecordType::ncclGroup, 1,
                       static_cast<uint16_t>(thread.groupCalls > 0xffff ? 0xffff : thread.groupCalls)};
        record.groupId = thread.groupId;
        record.startNs = thread.groupStartNs;
        g_session.push(record, record.endNs);
    }
    return result;
}
