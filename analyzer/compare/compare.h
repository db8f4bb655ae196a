// SPDX-License-Identifier: Apache-2.0
// Entry: two sides of summaries become a comparison.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/compare/comparability.h"
#include "analyzer/compare/gate.h"
#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/step_time.h"

namespace rankscope::compare {

struct CompareOptions {
    StepTimeOptions step;
    GateOptions gate;
    std::set<std::string> across;  // acrossNames(): differences that do not forbid to compare
};

/// All of it, however much there is: each format says what it leaves out. A run that was given twice on a side counts
/// once; one without steps is left out; both are said. An empty base is a comparison with nothing (a notice of the
/// gate). Throws CompareError when the new side is empty, when a side has runs but none with a step, or runs of
/// different kinds.
Comparison compareRuns(std::vector<RunSummary> base, std::vector<RunSummary> now, const CompareOptions& options);

}  // namespace rankscope::compare
