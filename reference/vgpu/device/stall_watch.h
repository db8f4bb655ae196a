// SPDX-License-Identifier: Apache-2.0
// Finds out why a job does not move: a process that died, or a thread that sleeps outside CUDA and so cannot issue
// anything.
#pragma once

#include <cstdint>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/engine.h"

namespace rankscope::vgpu {

class StallWatch {
  public:
    StallWatch(Arena& arena, uint32_t process)
        : m_arena(arena), m_process(process), m_progress(arena.progress.load()) {}

    /// Called with Arena::lock held after a wait of `sleptMs` brought nothing. True if somebody left the bounds.
    bool inspect(int sleptMs);

  private:
    bool reapDeadProcesses();
    bool excludeSleepers();

    Arena& m_arena;
    uint32_t m_process;
    uint64_t m_progress;
    int m_stalledMs = 0;
};

}  // namespace rankscope::vgpu
