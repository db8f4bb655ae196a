// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::analyzer {

/// Communication of the analysed steps by use, operation and size class; most time first.
std::vector<TrafficSummary> summarizeTraffic(const Analysis& analysis);

}  // namespace rankscope::analyzer
