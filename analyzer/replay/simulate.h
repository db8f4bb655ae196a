// SPDX-License-Identifier: Apache-2.0
// Gives a task graph its times. Deterministic, one pass over tasks and edges.
#pragma once

#include "analyzer/replay/task_graph.h"

namespace rankscope::replay {

/// Says when each task starts and ends, ns from the graph's origin.
struct Schedule {
    std::vector<int64_t> startNs;  // by task
    std::vector<int64_t> endNs;
};

/// Plays the graph with its own durations.
Schedule simulate(const TaskGraph& graph);
/// Plays it with other durations, one per task: the least work of all edits.
Schedule simulate(const TaskGraph& graph, std::span<const int64_t> durationNs);

struct StepTime {
    int step = 0;
    int64_t startNs = 0;  // when the first rank begins it
    int64_t durNs = 0;    // until the first rank begins the next one; of the last step: until the last rank ends it
};

/// Returns the steps of the job, measured as the score measures a report's steps: from start to start. By step; only
/// steps that every rank of `graph` has.
std::vector<StepTime> stepTimes(const TaskGraph& graph, const Schedule& schedule);

}  // namespace rankscope::replay
