// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/detectors/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::analyzer {

/// One row per (communicator, op, size class); a size class spans a factor of four.
std::vector<CollectiveRow> collectiveTable(const Analysis& analysis);

}  // namespace rankscope::analyzer
