// SPDX-License-Identifier: Apache-2.0
// The `faults` list of a scenario. Which fault makes sense for which kind of job is decided here.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

/// `scenario` is complete but for its faults. Throws ScenarioError for unknown or senseless faults.
Faults readFaults(const nlohmann::json& list, const Scenario& scenario, const std::string& origin);

/// Faults that are nothing but other settings of the job.
void applySettings(const Faults& faults, Parallel& parallel);

}  // namespace rankscope::reference
