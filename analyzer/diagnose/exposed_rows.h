// SPDX-License-Identifier: Apache-2.0
// Rows that show a claim about communication in the step that its finding names.
#pragma once

#include <string>
#include <vector>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

/// The one of the step whose window the finding names (setTypicalStep); the first where it names none.
const CriticalStep& shownStep(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
                              const job::Finding& finding);

/// Adds the `most` of `candidates` (indices into step.tasks) that are exposed longest to the evidence, in order of
/// time: "`what`, exposed for 1.2 ms".
void addExposedRows(const CriticalStep& step, std::vector<size_t> candidates, size_t most, const std::string& what,
                    job::Finding& finding);

}  // namespace rankscope::diagnose
