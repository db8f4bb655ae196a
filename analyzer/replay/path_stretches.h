// SPDX-License-Identifier: Apache-2.0
// Lays the critical path over the recording: on which rank it is when.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analyzer/replay/critical_path.h"

namespace rankscope::replay {

/// A part of the critical path that stays on one rank; in the recording's time, ns.
struct PathStretch {
    int rank = 0;
    int64_t startNs = 0, endNs = 0;
};

/// When the device worked on a task in the recording; nothing where that is unknown.
struct RecordedTime {
    int64_t startNs = 0, endNs = 0;
};
using RecordedTimes = std::function<std::optional<RecordedTime>(const TaskInfo&)>;

/// Returns the critical path through `steps`, as criticalPath() walks it, in order of time: each stretch goes on where
/// the one before it ends. The replay knows the chain, the recording the times; where the two differ, a stretch lies
/// where its device work was recorded.
std::vector<PathStretch> pathStretches(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps,
                                       const RecordedTimes& recorded);

}  // namespace rankscope::replay
