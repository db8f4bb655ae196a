// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/facts/trace_facts.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// All steps of the run in order; none where the whole run counts as one.
std::vector<StepRow> stepRows(const facts::TraceFacts& facts);

}  // namespace rankscope::report
