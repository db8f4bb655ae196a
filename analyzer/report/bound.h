// SPDX-License-Identifier: Apache-2.0
// What a job's step is bound by, in one word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// Takes the shares of the critical path; where there is none, of all ranks' time in the analysed steps. There, time
/// that a rank waits, and idle time that is not its host's doing, has its reason elsewhere and counts for no word.
///
/// A word is given where one share has more than half of the step and twice as much as any other: less than that, and
/// halving what is named would leave something else in front. `mixed`: no share has. `unknown`: nothing was measured,
/// or most of the step is in what has no word.
Bound boundOf(const ReplaySection& replay, const std::vector<BreakdownRow>& breakdown, bool knowsKernels);

/// "compute-bound", "mixed", "unknown".
std::string_view toText(BoundBy by);

/// Says what the job is bound by, with the shares: "compute-bound: 98.9 % of the critical path is compute, 1.1 %
/// communication"; empty where nothing was measured. One line without a full stop.
std::string boundByText(const Bound& bound);

/// As above; where there is a critical path, in its own words and with its ranks: "compute-bound; critical path: 98.9 %
/// compute, 1.1 % transfer; all of it on rank 3".
std::string boundLine(const Report& report);

}  // namespace rankscope::report
