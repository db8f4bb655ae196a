// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "collector/ingest/clock_alignment.h"

namespace rankscope::collector {

struct Segmentation {
    std::vector<store::Step> steps;   ///< by (rank, step); the steps of a rank follow each other without a gap
    std::string source;               ///< nvtx:NAME | period | none
    std::vector<store::Loss> losses;  ///< ranks whose own marks are lost
};

/// Finds the optimizer steps of every rank. In this order: a host range that repeats on every rank (PyTorch's
/// ProfilerStep#N, then names that say step or iteration, then whatever repeats outermost), the period of the rank's
/// sequence of NCCL calls, or one step that covers all device activity. A rank whose recording was cut and has none of
/// the ranges has the boundaries of its peers, as far as its recording goes. Boundaries lie on the device's time line:
/// step k begins when its range begins on the host and the work launched before is done.
Segmentation findSteps(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators,
                       const HostClocks& clocks);

}  // namespace rankscope::collector
