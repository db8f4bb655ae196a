// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "injector/record/ring.h"

namespace rankscope::injector {

/// What one thread of the job keeps for us. Plain data in static TLS, so that reading it is one instruction.
struct ThreadState {
    Ring* ring = nullptr;
    uint32_t generation = 0;  ///< of the session the ring belongs to; another one means: forked since
    uint32_t threadIndex = 0;
    uint32_t seq = 0;
    uint32_t depth = 0;    ///< > 0 inside a hook: calls that the library makes itself are not the job's
    bool refused = false;  ///< no ring could be had for this thread
    bool ended = false;    ///< its TLS destructors have run

    // NCCL group of this thread.
    uint32_t groupDepth = 0;
    uint32_t groupId = 0;
    uint32_t groupCalls = 0;
    int64_t groupStartNs = 0;

    // What NCCL told on this thread during the call in progress, by NVTX payload or profiler plugin; 0 nothing.
    uint64_t toldCommHash = 0;

    // Last communicator looked up.
    uint64_t commHandle = 0;
    uint32_t commIndex = 0;
    uint32_t commEpoch = 0;
    bool commHashed = false;  ///< its identity is NCCL's own
    uint32_t newComms = 0;    ///< communicators begun inside the open group
};

extern constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec")));

/// While it lives, hooks on this thread only forward.
class RecursionGuard {
  public:
    RecursionGuard() noexcept { ++t_thread.depth; }
    ~RecursionGuard() { --t_thread.depth; }
    RecursionGuard(const RecursionGuard&) = delete;
    RecursionGuard& operator=(const RecursionGuard&) = delete;
};

}  // namespace rankscope::injector
