// SPDX-License-Identifier: Apache-2.0
// Finds out why a job does not move: a process that died, or threads that all wait for each other.
#pragma once

#include <cstdint>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/engine.h"

namespace rankscope::vgpu {

class StallWatch {
  public:
    StallWatch(Arena& arena, uint32_t process);

    /// Called with Arena::lock held after a wait of at most `waitMs` brought nothing. True if somebody left the bounds.
    bool inspect(int waitMs);
    /// The same without the lock, by a thread that is blocked in libc; moves the simulation if it can go on.
    void lookWhileBlocked(int waitMs);

  private:
    int64_t sleptNs(int waitMs);
    bool reapDeadProcesses();
    bool giveUpStuckThreads();
    void tellIfStuck();

    Arena& m_arena;
    uint32_t m_process;
    int64_t m_lookedNs;
    uint64_t m_progress;
    int64_t m_stalledNs = 0;
    uint64_t m_moves;
    int64_t m_unmovedNs = 0;
};

}  // namespace rankscope::vgpu
