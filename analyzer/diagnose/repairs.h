// SPDX-License-Identifier: Apache-2.0
// What repairs of findings are written with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

using Changes = std::vector<job::Change>;

/// The number of that name in the finding's evidence.
std::optional<double> number(const job::Finding& finding, std::string_view name);

/// The finding's ranks compute as fast as their peers.
Changes balanced(const job::Analysis& analysis, const job::Finding& finding);

/// The hosts of the finding's ranks do not stall for that cause, a word that the change "no-stalls" knows.
Changes noStalls(const char* cause, const job::Finding& finding);

/// The links of the finding's ranks are as fast as they should be: faster by its number "slowness".
Changes healthyLinks(const job::Analysis& analysis, const job::Finding& finding);

}  // namespace rankscope::diagnose
