// SPDX-License-Identifier: Apache-2.0
// Secondary numbers of a comparison: they say where to look, and do not decide.
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// Each metric that some run has. A change is significant when its p value, corrected by Holm for the number of metrics
/// tested, is under 5 % and it is at least kWorthSaying of the step (times), of the whole (shares) or of itself
/// (others). The test is Student's on the runs, or the exact rank test where there are runs enough for it to pass the
/// correction. `categoriesRefused` and `timesRefused`: why what rests on device records, and what is no share, is not
/// compared; empty: it is.
std::vector<MetricChange> compareMetrics(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                         const std::string& categoriesRefused, const std::string& timesRefused);

inline constexpr double kWorthSaying = 0.01;

/// Holm's step-down correction: p values that may be compared with the level as they are. NaN stays NaN and does not
/// count.
std::vector<double> holm(std::vector<double> pValues);

}  // namespace rankscope::compare
