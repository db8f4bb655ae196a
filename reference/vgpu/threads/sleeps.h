// SPDX-License-Identifier: Apache-2.0
// Time that passes while a thread sleeps, and how long a deadline was when the thread set it.
#pragma once

#include "reference/vgpu/threads/waiters.h"

namespace rankscope::vgpu::threads {

/// A deadline is a reading of a clock plus a length. The length is told exactly by the thread's last reading of that
/// clock; how much later the thread gets here is the system's doing.
Deadline deadlineAt(clockid_t clock, const timespec& at);
Deadline deadlineIn(int64_t ns);
/// Of real time; negative: it has passed.
int64_t leftNs(const Deadline& deadline);

}  // namespace rankscope::vgpu::threads
