// SPDX-License-Identifier: Apache-2.0
// What a step is shorter without a cause, from a replay of the task graph instead of a detector's own model.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

/// By analysed step, ns, 0 and more: what the finding's changes save alone (changesFor() reads its id and ranks).
/// Nothing where the trace cannot be replayed well enough, or the finding has no change that the graph holds. Steps
/// that were not replayed (ReplayWindow) cost what the middle one does.
std::optional<std::vector<double>> replayedCosts(const job::Analysis& analysis, const job::Finding& finding);

}  // namespace rankscope::diagnose
