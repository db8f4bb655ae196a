// SPDX-License-Identifier: Apache-2.0
// How fast a rank's device is in a step for the work that it does there, against its own other steps: no peers needed.
#pragma once

#include <map>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

/// By kernel (name and launch shape): its median duration by analysed step, ns; 0 where the step has none. Kernels of
/// unknown shape are left out.
using KernelTimes = std::map<facts::KernelKey, std::vector<double>>;
KernelTimes kernelTimes(const job::Analysis& analysis, const facts::RankSummary& rank);

/// By analysed step: what its kernels take over what they take in the rank's middle step, 0 where it has none. Other
/// kernels, or more of them, change nothing.
std::vector<double> ownPace(const job::Analysis& analysis, const facts::RankSummary& rank);

}  // namespace rankscope::diagnose
