// SPDX-License-Identifier: Apache-2.0
// The truth about a run, `expect` and `allow`: the workload does not act on it, and checks it before the job is run for
// nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/workloads/claim.h"

namespace rankscope::reference {

/// Checks a list of {"id", "ranks"} or of bare ids; texts for people may stand beside them (cause, comment,
/// description, note, title, why). Whether there is such a diagnosis is for the caller to say. `key` is expect or
/// allow. Throws ScenarioError that names `origin` and the key.
std::vector<Claim> readClaims(const nlohmann::json& list, const std::string& key, int worldSize,
                              const std::string& origin);

}  // namespace rankscope::reference
