// SPDX-License-Identifier: Apache-2.0
// Which degrees, sizes and options of a scenario go together.
#pragma once

#include <string>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

/// `scenario` is complete but for its faults. Throws ScenarioError, which names the key, for what makes no sense.
void checkCombination(const Scenario& scenario, const std::string& origin);

}  // namespace rankscope::reference
