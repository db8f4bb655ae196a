// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/analysis.h"
#include "analyzer/detectors/claims.h"
#include "analyzer/report/report_model.h"

namespace rankscope::analyzer {

/// `findings` with their savings replayed, `claims` of their detectors.
Report buildReport(const Analysis& analysis, const Claims& claims, std::vector<Finding> findings);

}  // namespace rankscope::analyzer
