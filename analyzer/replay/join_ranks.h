// SPDX-License-Identifier: Apache-2.0
// Phase 2 of the replay: the ranks' tasks become one graph; collectives, sends and receives join them.
#pragma once

#include <optional>

#include "analyzer/replay/rank_tasks.h"

namespace rankscope::analyzer {

/// nullopt when tasks wait for each other in a circle. Takes the ranks' tasks apart.
std::optional<TaskGraph> joinRanks(std::vector<RankTasks> ranks, const TraceFacts& facts);

}  // namespace rankscope::analyzer
