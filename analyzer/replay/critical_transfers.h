// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/replay/simulate.h"

namespace rankscope::replay {

/// A part of the critical path (critical_path.h) that is in transfers, by what is transferred.
struct PathTransfer {
    uint32_t communicatorId = 0;  // 0: unknown
    store::Op op = store::Op::unknown;
    double nsPerStep = 0;
};

/// They add up to the `transfer` shares of criticalPath() of the same arguments.
std::vector<PathTransfer> criticalTransfers(const TaskGraph& graph, const Schedule& schedule,
                                            const std::vector<int>& steps);

}  // namespace rankscope::replay
