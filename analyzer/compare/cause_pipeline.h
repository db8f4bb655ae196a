// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Why `ns` more of the critical path lead through a pipeline whose ranks work no longer: another schedule, or fewer
/// micro-batches, whose ends leave stages idle
/// ((P - 1) / (M V + P - 1) of the step). Nothing where the schedule is the same, is not known, or ranks wait no longer
/// for each other's messages.
std::optional<ChangeCause> pipelineCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed);

}  // namespace rankscope::compare
