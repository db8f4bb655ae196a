// SPDX-License-Identifier: Apache-2.0
// Which transfers had the links to themselves: one that another slows down tells of the links' load as much as of its
// own protocol.
#pragma once

#include <map>

#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

/// By id of a collective, the share of its transfer during which a rank of it had another communicator's collective
/// under way as well; the busiest rank counts. Those that had none are not in it.
std::map<int64_t, double> sharedTransfers(const facts::TraceFacts& facts);

}  // namespace rankscope::costs
