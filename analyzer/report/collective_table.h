// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// One row per (communicator, op, size class); a size class spans a factor of four.
std::vector<CollectiveRow> collectiveTable(const job::Analysis& analysis);

/// Who arrived last how often, most often first: "rank 3 (100 %)", at most so many, leaving out who seldom did; "none
/// mostly", "unknown".
std::string lastText(const CollectiveRow& row, size_t most);

/// Calls of a step: "12", "0.5".
std::string countText(double perStep);

}  // namespace rankscope::report
