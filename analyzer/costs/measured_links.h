// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/costs/nccl_tests_table.h"

namespace rankscope::costs {

/// Adds peaks from the plateau of nccl-tests tables to `sources`: a table of one node gives the port inside it, one of
/// several nodes a rank's share of its node's cards (rings use all of them). Start-up stays unknown: the smallest sizes
/// run under another protocol. Tables that tell no peak, or that a job with these facts cannot trust (table_trust.h),
/// are complaints.
void addMeasuredLinks(const std::vector<NcclTestsTable>& tables, const facts::TraceFacts& facts, LinkSources& sources);

}  // namespace rankscope::costs
