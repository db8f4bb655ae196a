// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// Groups of experts as probes of links: undisturbed all-to-alls against what their busiest rank's bytes take at peak.
/// NCCL reaches less of the peak with messages than with collectives, and how much less nobody knows, so groups are
/// compared with the best one of their class of links: `slowness` is 1 for that, and a group without another like it is
/// no probe.
std::vector<LinkProbe> exchangeProbes(const Analysis& analysis);

}  // namespace rankscope::job
