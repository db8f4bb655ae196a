// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/detectors/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::analyzer {

Report buildReport(const Analysis& analysis, std::vector<Finding> findings);

}  // namespace rankscope::analyzer
