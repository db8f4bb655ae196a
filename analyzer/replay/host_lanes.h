// SPDX-License-Identifier: Apache-2.0
// Plays the host threads of a rank that work with the device.
#pragma once

#include <map>

#include "analyzer/replay/graph_draft.h"

namespace rankscope::replay {

/// Threads that take turns (a program's own and autograd's) are one lane: while one works the other waits for it.
/// Threads that work at the same time are a lane each.
class HostLanes {
  public:
    /// `active` says by call whether its thread shall be kept for it.
    void assign(const std::vector<facts::HostCall>& calls, const std::vector<bool>& active, int rank,
                GraphDraft& draft);

    /// Returns kNoLane where the thread has nothing to do with the device.
    uint32_t laneOf(int32_t thread) const;
    uint32_t anyLane() const { return m_lanes.empty() ? kNoLane : m_lanes.begin()->second; }
    /// Adds a task that begins at `startNs` and ends at `endNs` by the recording. One that begins inside the task
    /// before it cuts that off.
    TaskId add(GraphDraft& draft, TaskInfo info, uint32_t lane, int64_t startNs, int64_t endNs, int64_t durationNs);

  private:
    std::map<int32_t, uint32_t> m_lanes;      // by thread
    std::map<uint32_t, int64_t> m_busyUntil;  // by lane: recorded end of its last task
};

}  // namespace rankscope::replay
