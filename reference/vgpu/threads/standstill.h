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

    // Long against the time a woken thread waits for a processor, short against what a watchdog's time-out is.
    static constexpr int64_t kLastingMs = 1000;
    // Of the time between two questions so much counts: who was not let ask for longer, on a busy machine, was not
    // alone in that.
    static constexpr int64_t kLongestStretchMs = 200;

    /// Asked again and again: true once nothing has moved for kLastingMs.
    bool lasts() {
        LocalProcess& process = LocalProcess::instance();
        const uint64_t moves = process.arena().moves.load();
        return lasts(process.standsStill(), moves, monotonicMs());
    }
    /// The same by what is known at `nowMs`: whether the job stands still, and how often it has moved (Arena::moves).
    bool lasts(bool standsStill, uint64_t moves, int64_t nowMs) {
        if (!m_stoodStill || !standsStill || moves != m_moves) m_lasting.begin(nowMs);
        m_stoodStill = standsStill;
        m_moves = moves;
        return m_lasting.look(nowMs, kLongestStretchMs) >= kLastingMs;
    }

  private:
    bool m_stoodStill = false;
    uint64_t m_moves = 0;
    LookedTime m_lasting{};
};

}  // namespace rankscope::vgpu::threads
