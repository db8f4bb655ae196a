// SPDX-License-Identifier: Apache-2.0
// What sends and receives are for.
#pragma once

#include <map>
#include <vector>

#include "analyzer/facts/layout.h"

namespace rankscope::facts {

struct Exchanges {
    std::vector<Pipeline> pipelines;   // by first rank of the first stage
    std::map<int64_t, CommUse> roles;  // of sends and receives, by communicator
};

/// Chains of ranks in which each talks to its neighbours only are pipelines, closed to a ring by interleaved schedules.
/// Where all members of a communicator send to each other at once, an all-to-all is made of sends: experts. A ring in
/// one direction is neither. n log n in the messages of one step.
Exchanges findExchanges(const TraceFacts& facts, const std::vector<RankSummary>& ranks);

}  // namespace rankscope::facts
