// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/detectors/link_probes.h"

namespace rankscope::analyzer {

/// What the steps gain when the traffic of these probes runs as fast as its links should: per analysed step, on the
/// rank that waits least.
std::vector<double> savingAtPeak(const Analysis& analysis, const std::vector<const LinkProbe*>& probes);

}  // namespace rankscope::analyzer
