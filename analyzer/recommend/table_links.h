// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/costs/nccl_tests_table.h"

namespace rankscope::recommend {

/// Peaks from the plateau of nccl-tests tables: a table of one node gives the port inside it, one of several nodes a
/// rank's share of its node's cards (rings use all of them). The fastest table of each class counts. Start-up stays
/// unknown: the smallest sizes run under another protocol. Adds to `sources`.
void addMeasuredLinks(const std::vector<costs::NcclTestsTable>& tables, costs::LinkSources& sources);

}  // namespace rankscope::recommend
