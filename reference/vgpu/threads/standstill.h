// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reference/vgpu/device/local_process.h"

namespace rankscope::vgpu::threads {

/// Whether the job waits for somebody outside, so that only the real clock can end a wait. For a moment any job on a
/// busy machine looks so, between a thread's being woken by the system and its coming back; what thread looked on then
/// would be chance. One of each thread, so that many short waits of one stand-still wait for it once.
class Standstill {
  public:
    static Standstill& ofThisThread() {
        static thread_local Standstill own;
        return own;
    }

    /// Asked again and again: true once nothing has moved for kLastingMs since it was asked first.
    bool lasts() {
        LocalProcess& process = LocalProcess::instance();
        const uint64_t moves = process.arena().moves.load();
        const int64_t now = monotonicMs();
        const bool goesOn = process.standsStill() && m_sinceMs != 0 && moves == m_moves;
        if (!goesOn) m_sinceMs = now;
        m_moves = moves;
        return goesOn && now - m_sinceMs >= kLastingMs;
    }

  private:
    // Long against the time a woken thread waits for a processor, short against what a watchdog's time-out is.
    static constexpr int64_t kLastingMs = 1000;

    int64_t m_sinceMs = 0;
    uint64_t m_moves = 0;
};

}  // namespace rankscope::vgpu::threads
