// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "collector/store/event_model.h"

namespace rankscope::facts {

/// "The job died: rank 3 (on node0) ...: look there for the cause." from what the collector told of the ranks' ends;
/// empty for a job whose ranks all ended by themselves with status 0, as far as is known.
std::string jobDeath(const std::vector<store::Loss>& losses);

}  // namespace rankscope::facts
