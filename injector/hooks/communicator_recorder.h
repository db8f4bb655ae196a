// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/hooks/communicators.h"
#include "injector/hooks/nccl_types.h"

namespace rankscope::injector {

/// The process's communicators, written down as they come, get known better, and go.
extern constinit Communicators g_communicators;

/// A communicator was made. Fills in what NCCL can be asked for without touching the GPU.
void recordCommunicator(Communicator communicator, void* caller) noexcept;
/// The outermost group ended: what was begun in it can be asked for now.
void completeCommunicators(void* caller) noexcept;
/// NCCL told its own hash on this thread during a call on `handle`.
void learnHash(uint64_t handle) noexcept;
void recordCommunicatorEnd(NcclComm comm, uint16_t how) noexcept;

}  // namespace rankscope::injector
