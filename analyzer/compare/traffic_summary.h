// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// Communication of the analysed steps by use, operation and size class; most time first.
std::vector<TrafficSummary> summarizeTraffic(const job::Analysis& analysis);

}  // namespace rankscope::compare
