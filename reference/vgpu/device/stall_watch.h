// SPDX-License-Identifier: Apache-2.0
// Finds out why a job does not move: a process that died, or threads that all wait for each other.
#pragma once

#include <cstdint>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/engine.h"

namespace rankscope::vgpu {

class StallWatch {
  public:
    StallWatch(Arena& arena, uint32_t process)
        : m_arena(arena), m_process(process), m_progress(arena.progress.load()), m_moves(arena.moves.load()) {}

    /// Called with Arena::lock held after a wait of `sleptMs` brought nothing. True if somebody left the bounds.
    bool inspect(int sleptMs);
    /// The same without the lock, by a thread that is blocked in libc; moves the simulation if it can go on.
    void lookWhileBlocked(int sleptMs);

  private:
    bool reapDeadProcesses();
    bool giveUpStuckThreads();
    void tellIfStuck();

    Arena& m_arena;
    uint32_t m_process;
    uint64_t m_progress;
    int m_stalledMs = 0;
    uint64_t m_moves;
    int m_unmovedMs = 0;
};

}  // namespace rankscope::vgpu
