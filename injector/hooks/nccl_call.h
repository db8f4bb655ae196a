// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/hooks/communicator_recorder.h"
#include "injector/session/cupti_session.h"
#include "injector/session/session.h"

namespace rankscope::injector {

/// Whether a hook that runs now is the job's own call (and not one NCCL or CUDA makes inside another) in a process we
/// record.
inline bool isOuterNcclCall() noexcept {
    return t_thread.depth == 0 && g_session.mode() != Mode::off && g_session.isAlive(Cause::gpu) &&
           g_session.config().traces(traceNccl);
}

/// What a collective, send or receive was called with.
struct NcclArguments {
    capture::NcclOp op;
    uint64_t count;
    int dataType;
    int reduceOp;    ///< -1 none
    int peerOrRoot;  ///< -1 none
    NcclComm comm;
    NcclStream stream;
};

inline uint8_t toByte(int value) noexcept {
    return value < 0 || value > 254 ? 255 : static_cast<uint8_t>(value);
}

inline uint32_t communicatorIndex(uint64_t handle) noexcept {
    ThreadState& thread = t_thread;
    const uint32_t epoch = g_communicators.epoch();
    if (thread.commHandle != handle || thread.commEpoch != epoch) {
        thread.commIndex = g_communicators.find(handle);
        thread.commHandle = handle;
        thread.commEpoch = epoch;
        thread.commHashed = false;
    }
    return thread.commIndex;
}

/// Stamps, calls, stamps, pushes. `call` is the real function with its arguments.
template <typename Call>
int recordNcclCall(const NcclArguments& arguments, Call call) noexcept {
    // Around everything: a handler that ends the process in here must see that the libraries are busy.
    RecursionGuard guard;
    ThreadState& thread = t_thread;
    capture::NcclCallRecord record{};
    record.callId = g_session.nextCallId();
    const bool grouped = thread.groupDepth > 0;
    if (grouped)
        ++thread.groupCalls;
    else
        cupti::pushCallId(record.callId);
    thread.toldCommHash = 0;
    record.startNs = g_session.now();
    const int result = call();
    record.endNs = g_session.now();
    if (!grouped) cupti::popCallId();
    const auto handle = reinterpret_cast<uint64_t>(arguments.comm);
    record.communicator = communicatorIndex(handle);
    if (thread.toldCommHash != 0 && !thread.commHashed && record.communicator != 0) {
        learnHash(handle);
        thread.commHashed = true;
    }
    record.head = {capture::RecordType::ncclCall, 2, static_cast<uint16_t>(arguments.op)};
    record.seq = g_session.nextSeq();
    record.count = arguments.count;
    record.stream = reinterpret_cast<uint64_t>(arguments.stream);
    record.peerOrRoot = arguments.peerOrRoot;
    record.groupId = grouped ? thread.groupId : 0;
    record.dataType = toByte(arguments.dataType);
    record.reduceOp = toByte(arguments.reduceOp);
    record.result = toByte(result);
    g_session.push(record, record.endNs);
    return result;
}

}  // namespace rankscope::injector
