// SPDX-License-Identifier: Apache-2.0
// What a detector reads: facts of the run and the summaries of its ranks.
#pragma once

#include <vector>

#include "analyzer/detectors/delays.h"
#include "analyzer/detectors/kernel_ratios.h"
#include "analyzer/detectors/link_probes.h"
#include "analyzer/replay/replay.h"
#include "analyzer/timeline/cost_fit.h"
#include "analyzer/timeline/layout.h"
#include "analyzer/timeline/link_peaks.h"
#include "analyzer/timeline/rank_summary.h"
#include "analyzer/timeline/trace_facts.h"

namespace rankscope::analyzer {

/// All but the replay, which is by far the largest part.
struct RecordedJob {
    TraceFacts facts;
    std::vector<RankSummary> ranks;  // recorded ranks, by rank
    LinkPeaks peaks;
    std::vector<CostFit> fits;
    Layout layout;
    std::vector<int> steps;                 // analysed step numbers that every recorded rank has
    double stepNs = 0;                      // median over these steps of the longest rank's step
    std::vector<KernelRatio> kernelRatios;  // one per rank of `ranks`, against all others
    std::vector<LinkProbe> linkProbes;

    const CostFit* findFit(int64_t communicator, store::Op op) const;
    /// Summary of a recorded rank, nullptr when it left nothing.
    const RankSummary* findRank(int rank) const;
    /// A rank's window of a step, nullptr when it has none.
    const StepWindow* window(int rank, int step) const;
    /// A rank's attribution of a step.
    const Attribution* attribution(const RankSummary& rank, int step) const;
    /// Communication kernels a rank starts in a step.
    std::vector<CommTask> tasks(const RankSummary& rank, int step) const;
    int64_t clockBoundNs(const std::vector<int>& among) const {
        return facts.sameHost(among) ? 0 : facts.clock.boundNs;
    }
};

struct Analysis : RecordedJob {
    ReplayModel replay;  // of `steps`
    Delays delays;       // what ranks lose to each other
};

Analysis makeAnalysis(TraceFacts facts, std::vector<RankSummary> ranks, const LinkSources& links = {});

}  // namespace rankscope::analyzer
