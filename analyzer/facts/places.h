// SPDX-License-Identifier: Apache-2.0
// Tells where each rank stands in the grid of the job's parallelism.
#pragma once

#include <map>
#include <string>

#include "analyzer/facts/layout.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::facts {

/// Directions that a rank has a place in, from 0: "dp", "tp", "ep" by its place in its communicator of that role, "pp"
/// by its stage. Of several communicators of a role the largest counts. Missing where the job does not split that way,
/// or where members of the communicator were not recorded.
using Places = std::map<std::string, int>;

/// By rank; ranks without any place are missing.
std::map<int, Places> placesOf(const TraceFacts& facts, const Layout& layout);

}  // namespace rankscope::facts
