// SPDX-License-Identifier: Apache-2.0
// The effects of operations on memory, in stream order, as soon as they can happen and without regard to virtual time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>

#include "reference/vgpu/device/local_process.h"

namespace rankscope::vgpu {

class DataPlane {
  public:
    static DataPlane& instance();

    /// `attempt` returns false while it has to wait for another rank. LocalProcess::mutex() is held.
    void enqueue(StreamPoint at, std::function<bool()> attempt);
    /// Later effects of stream `at` wait for those up to `dependency`. LocalProcess::mutex() is held.
    void enqueueDependency(StreamPoint at, StreamPoint dependency);
    /// Does what has become possible since the last look; LocalProcess::mutex() is not held.
    void catchUp();
    /// Returns once the effects up to the points have happened; LocalProcess::mutex() is not held.
    void waitFor(std::span<const StreamPoint> points);
    /// Whether they have; LocalProcess::mutex() is not held.
    bool isThrough(std::span<const StreamPoint> points) const;
    static void forgetAfterFork();
    /// True while the calling thread carries out effects: whose they are has nothing to do with who happens to be here.
    static bool isInEffects();

  private:
    struct Pending {
        uint64_t seq;
        std::function<bool()> attempt;
    };
    bool done(StreamPoint point) const;
    bool pump();
    void pumpIfRung();
    void startHelper();
    void help();

    std::map<uint32_t, std::deque<Pending>> m_blocked;  ///< by stream; what ran at once never gets here
    bool m_helperRuns = false;
    uint32_t m_pumpedBell = 0;  ///< the bell at the last look at everything
    uint32_t m_waiters = 0;     ///< threads in waitFor: they do the helper's work
    std::condition_variable m_noWaiters;
};

}  // namespace rankscope::vgpu
