// SPDX-License-Identifier: Apache-2.0
// Semaphores that processes share: mostly locks of queues, which the processes of a family get in the order of their
// clocks. Who has to wait goes on no earlier than the post that let it.
#pragma once

#include <semaphore.h>

#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {

/// For threads with a clock. They answer as sem_trywait, sem_clockwait (without a deadline: sem_wait) and sem_post do.
int tryShared(sem_t* semaphore);
int waitShared(sem_t* semaphore, const char* call, const Deadline* deadline);
int postShared(sem_t* semaphore);
/// Another semaphore may lie at its address from here on.
void forgetShared(const sem_t* semaphore);
void forgetSharedAfterFork();

}  // namespace rankscope::vgpu::threads
