// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace rankscope::cli {

// When the process was started, in clock ticks since the boot (/proc/PID/stat field 22): tells it from a later one with
// the same pid. 0: there is none.
uint64_t processStart(pid_t pid);

}  // namespace rankscope::cli
