// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/job/link_probes.h"

namespace rankscope::diagnose {

/// By analysed step, ns: what it gains at most when the traffic of these probes runs as fast as its links should, on
/// the rank that has most of it exposed.
std::vector<double> savingAtPeak(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes);

}  // namespace rankscope::diagnose
