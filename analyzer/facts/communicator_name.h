// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/facts/layout.h"

namespace rankscope::facts {

/// What a reader is told of each communicator, by id: its role and its ranks, "tensor parallel 0-3", "data parallel
/// 0,4"; NCCL's own name instead of a role that is unknown. No two of a run have the same name: where role and ranks
/// are the same, the id stands behind them.
std::map<int64_t, std::string> communicatorNames(const TraceFacts& facts, const Layout& layout);

/// Of one of them; "communicator 5" for an id that the run does not have.
std::string communicatorName(const TraceFacts& facts, const Layout& layout, int64_t id);

/// "0-3", "0,4", "0,8,...,504 (64 ranks)": ranks in ascending order.
std::string rankListText(std::vector<int> ranks);

}  // namespace rankscope::facts
