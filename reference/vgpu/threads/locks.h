// SPDX-License-Identifier: Apache-2.0
// Locks of the program: who gets one when several want it, and what time it is then.
#pragma once

#include <pthread.h>

namespace rankscope::vgpu::threads {

int lockMutex(pthread_mutex_t* mutex);
int unlockMutex(pthread_mutex_t* mutex);

}  // namespace rankscope::vgpu::threads
