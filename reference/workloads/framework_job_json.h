// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "reference/workloads/framework_job.h"
#include "reference/workloads/scenario_json.h"

namespace rankscope::reference {

/// The object `framework` of a scenario. Throws ScenarioError.
FrameworkJob readFrameworkJob(ObjectReader reader);

/// The same for tools that start it.
nlohmann::json summaryOf(const FrameworkJob& job);

}  // namespace rankscope::reference
