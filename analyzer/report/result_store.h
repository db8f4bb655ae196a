// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// Replaces attribution, idle_gap, finding and finding_evidence of trace.db, all in one transaction.
void storeResults(const std::filesystem::path& database, const job::Analysis& analysis, const Report& report);

}  // namespace rankscope::report
