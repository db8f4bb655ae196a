// SPDX-License-Identifier: Apache-2.0
// Where the host threads of a job stand, for who wonders why it does not go on.
#pragma once

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

/// On stderr: every thread of every rank, what it waits for and since when on its clock, and if the job ends by that.
/// Arena::lock is held.
void reportThreads(const Arena& arena, int stalledMs, bool isForEver);
/// On stderr: from here on the run is not reproducible, and which thread is the reason.
void reportGivenUp(const Arena& arena, const HostThread& thread);

}  // namespace rankscope::vgpu
