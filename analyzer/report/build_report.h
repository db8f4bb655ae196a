// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/claims.h"
#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// `findings` with their savings replayed, `claims` of their detectors.
Report buildReport(const job::Analysis& analysis, const diagnose::Claims& claims, std::vector<job::Finding> findings);

}  // namespace rankscope::report
