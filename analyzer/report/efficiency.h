// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/job/analysis.h"
#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// The POP model (Performance Optimisation and Productivity centre): parallel efficiency = mean compute / step = load
/// balance (mean / longest compute) x serialisation x transfer. Transfer comes from a replay on an ideal network;
/// without one, and for groups, it is unknown and stays inside serialisation. The same for every communicator with a
/// known role, over its recorded members: where inside the job the balance is lost.
EfficiencySection efficiencySection(const job::Analysis& analysis, const std::vector<BreakdownRow>& rows);

}  // namespace rankscope::report
