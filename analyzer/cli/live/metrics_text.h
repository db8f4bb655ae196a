// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/cli/live/live_state.h"

namespace rankscope::cli {

// The state as metrics (docs/metrics.md), OpenMetrics 1.0. Of ranks those of the host by that name, or where none is
// on it (a machine that only looks, virtual hosts) all.
std::string metricsText(const LiveState& state, const std::string& host);

}  // namespace rankscope::cli
