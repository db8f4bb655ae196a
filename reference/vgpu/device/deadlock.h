// SPDX-License-Identifier: Apache-2.0
// A job whose ranks wait for each other for ever: how it is known, and how it ends.
#pragma once

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

/// Exit status of each process of such a job: EX_SOFTWARE of sysexits.h.
inline constexpr int kExitDeadlock = 70;

/// True if no rank can ever go on: the main thread of each waits for the device or a communicator, or is blocked in its
/// own process without an end while all threads that use the device are. At least one waits for the device. Who waits
/// for an answer from outside or for a time is not stuck. To be asked where nothing has moved for long. Arena::lock is
/// held.
bool isDeadlock(const Arena& arena);

/// Ends the process, with what has been recorded so far delivered to the profiler, if the job is told to be deadlocked.
/// Arena::lock is not held.
void endIfDeadlocked(const Arena& arena);

/// Ends the process with `status`, recordings delivered. The simulation is not moved on: others may wait for this very
/// process.
[[noreturn]] void endEarly(int status);

}  // namespace rankscope::vgpu
