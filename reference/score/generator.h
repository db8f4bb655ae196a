// SPDX-License-Identifier: Apache-2.0
// Scenarios made from a table of jobs and faults (full_suite.json): the same table gives the same scenarios on every
// machine.
#pragma once

#include <string>
#include <vector>

#include "reference/score/scenario_file.h"

namespace rankscope::score {

/// `table` is the text of full_suite.json or hangs_suite.json; README.md describes it. Names begin with `suite`. First
/// the healthy controls, then every fault at every strength and seed. `draw` 0 is the table's own draw; another number
/// draws other seeds, and with them other sizes, places and noise. A seed chooses job, place, size and noise alike for
/// all strengths of a fault, so that strengths can be compared. Throws ScenarioFileError.
std::vector<Scenario> generate(const std::string& table, const std::string& origin, int draw = 0,
                               const std::string& suite = "full");

}  // namespace rankscope::score
