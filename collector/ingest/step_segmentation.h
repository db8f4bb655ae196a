// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "collector/ingest/clock_alignment.h"
#include "collector/ingest/step_agreement.h"

namespace rankscope::collector {

struct Segmentation {
    std::vector<store::Step> steps;   ///< by (rank, step); the steps of a rank follow each other without a gap
    std::string source;               ///< nvtx:NAME | updates | period | none
    std::vector<store::Loss> losses;  ///< ranks whose own marks are lost
};

/// Finds the optimizer steps of every rank. In this order: a host range whose name says step or iteration on every rank
/// (PyTorch's ProfilerStep#N first); the ends of the optimizer's updates; any other range that repeats outermost; the
/// period of the rank's kernels, or, where only NCCL's are recorded, of its calls; or one step that covers all device
/// activity. Updates and periods count only where all ranks meet in the same steps. A rank whose recording was cut and
/// has no marks has the boundaries of its peers, as far as its recording goes. Boundaries lie on the device's time
/// line: step k begins when its range begins on the host, or the update before is launched, and the work launched
/// before is done.
Segmentation findSteps(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators,
                       const Encounters& encounters, const HostClocks& clocks);

}  // namespace rankscope::collector
