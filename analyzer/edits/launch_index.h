// SPDX-License-Identifier: Apache-2.0
// Who launched what, and what each rank computes in which order: a task graph read the other way round, for edits that
// move work.
#pragma once

#include <map>
#include <vector>

#include "analyzer/replay/task_graph.h"

namespace rankscope::edits {

/// The stream of a rank that computes most.
struct ComputeLane {
    uint32_t lane = replay::kNoLane;
    std::vector<replay::TaskId> kernels;  // of all steps, in order
    std::vector<int64_t> doneNs;          // compute done when each of them ends, ns; leads are left out

    /// Index of the kernel in `kernels`; -1 when it is none of them.
    int64_t find(replay::TaskId task) const;
};

class LaunchIndex {
  public:
    explicit LaunchIndex(const replay::TaskGraph& graph);

    /// The host call that put a device task on its stream; kNoTask when no call is known. A transfer has its arrival's.
    replay::TaskId launchOf(replay::TaskId task) const { return m_launchOf[task]; }
    /// Device tasks that a host call launched (arrival and transfer count once).
    uint32_t launched(replay::TaskId host) const { return m_launched[host]; }
    /// Compute of a rank; empty for one that computes nothing.
    const ComputeLane& compute(int rank) const;

  private:
    std::vector<replay::TaskId> m_launchOf;
    std::vector<uint32_t> m_launched;
    std::map<int, ComputeLane> m_compute;
};

}  // namespace rankscope::edits
