// SPDX-License-Identifier: Apache-2.0
// Phase 2 of the replay: the ranks' tasks become one graph; collectives, sends and receives join them.
#pragma once

#include <string>
#include <vector>

#include "analyzer/replay/rank_tasks.h"

namespace rankscope::replay {

struct JoinedRanks {
    std::string problem;  // why there is no graph; empty: there is
    TaskGraph graph;
};

/// Takes the ranks' tasks apart.
JoinedRanks joinRanks(std::vector<RankTasks> ranks, const facts::TraceFacts& facts);

}  // namespace rankscope::replay
