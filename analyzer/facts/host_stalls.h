// SPDX-License-Identifier: Apache-2.0
// Time in which the host keeps the device from computing. Unlike an idle gap it goes on while a collective runs: what a
// late host costs does not shrink because communication that compute would have hidden shows meanwhile. Waiting for
// other ranks is left out.
#pragma once

#include <vector>

#include "analyzer/facts/idle_causes.h"

namespace rankscope::facts {

/// Stalls of all steps, by start. Empty when no host calls are recorded.
std::vector<HostStall> hostStalls(const DeviceActivity& activity, const IdleCauses& causes, const RankFacts& facts);

}  // namespace rankscope::facts
