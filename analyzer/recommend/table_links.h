// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/recommend/nccl_tests_table.h"
#include "analyzer/timeline/link_peaks.h"

namespace rankscope::analyzer {

/// Peaks from the plateau of nccl-tests tables: a table of one node gives the port inside it, one of several nodes a
/// rank's share of its node's cards (rings use all of them). The fastest table of each class counts. Start-up stays
/// unknown: the smallest sizes run under another protocol. Adds to `sources`.
void addMeasuredLinks(const std::vector<NcclTestsTable>& tables, LinkSources& sources);

}  // namespace rankscope::analyzer
