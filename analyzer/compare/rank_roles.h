// SPDX-License-Identifier: Apache-2.0
// A rank's place in the job's layout, so that a rank of one run finds its counterpart in another whose ranks are
// numbered otherwise.
#pragma once

#include <map>
#include <string>

#include "analyzer/job/analysis.h"

namespace rankscope::compare {

/// By rank: "pp 1, dp 0, tp 3", the places in its pipeline and in its largest group of each use, as far as those have
/// more than one member. "rank 3" for all ranks when that does not tell them apart.
std::map<int, std::string> rankRoles(const job::Analysis& analysis);

}  // namespace rankscope::compare
