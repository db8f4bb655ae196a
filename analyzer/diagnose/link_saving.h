// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/job/link_probes.h"

namespace rankscope::diagnose {

/// What the steps gain when the traffic of these probes runs as fast as its links should: per analysed step, on the
/// rank that waits least.
std::vector<double> savingAtPeak(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes);

}  // namespace rankscope::diagnose
