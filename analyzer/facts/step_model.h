// SPDX-License-Identifier: Apache-2.0
// Models one rank's step as compute that progresses and a network that carries one collective after the other. It
// answers how much shorter a step gets when compute is faster, collectives are merged or start earlier. Waiting for
// other ranks is no part of it: it describes the rank the others wait for.
#pragma once

#include <vector>

#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

struct ModelTask {
    double readyAt = 0;  // compute progress (ns of compute done) at which its data is there
    double durationNs = 0;
    double neededAt = 0;  // compute progress that cannot be passed before it has ended
    double lagNs = 0;     // how long after its data the host calls it
};

/// Returns the step time, ns: compute of `computeNs` in total at speed 1, the tasks in order on one network. Linear but
/// for a sort by neededAt.
double modelStepNs(const std::vector<ModelTask>& tasks, double computeNs);

/// Returns the tasks of one step of one rank as they were recorded. All-gathers are needed where the next one of their
/// communicator starts (its consumer issues it: prefetching), or at once when compute stood still behind them; the
/// others where the last of them ends: at the optimizer, which all-gathers of new parameters may follow.
std::vector<ModelTask> modelTasks(const std::vector<CommTask>& tasks);

}  // namespace rankscope::facts
