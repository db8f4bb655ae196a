// SPDX-License-Identifier: Apache-2.0
// What a detector reads: facts of the run and the summaries of its ranks.
#pragma once

#include <vector>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/costs/link_peaks.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/job/delays.h"
#include "analyzer/job/kernel_ratios.h"
#include "analyzer/job/link_probes.h"
#include "analyzer/replay/replay.h"

namespace rankscope::job {

/// All but the replay, which is by far the largest part.
struct RecordedJob {
    facts::TraceFacts facts;
    std::vector<facts::RankSummary> ranks;  // recorded ranks, by rank
    costs::LinkPeaks peaks;
    costs::CollectiveCost cost;  // by `peaks` and the collectives
    facts::Layout layout;
    std::vector<int> steps;                 // analysed step numbers that every recorded rank has
    double stepNs = 0;                      // median over these steps of the longest rank's step
    std::vector<KernelRatio> kernelRatios;  // one per rank of `ranks`, against all others
    std::vector<LinkProbe> linkProbes;

    const costs::CostFit* findFit(int64_t communicator, store::Op op) const { return cost.line(communicator, op); }
    /// Summary of a recorded rank, nullptr when it left nothing.
    const facts::RankSummary* findRank(int rank) const;
    /// A rank's window of a step, nullptr when it has none.
    const facts::StepWindow* window(int rank, int step) const;
    /// A rank's attribution of a step.
    const facts::Attribution* attribution(const facts::RankSummary& rank, int step) const;
    /// Communication kernels a rank starts in a step.
    std::vector<facts::CommTask> tasks(const facts::RankSummary& rank, int step) const;
    int64_t clockBoundNs(const std::vector<int>& among) const {
        return facts.sameHost(among) ? 0 : facts.clock.boundNs;
    }
};

struct Analysis : RecordedJob {
    replay::ReplayModel replay;  // of `steps`
    Delays delays;               // what ranks lose to each other
};

Analysis makeAnalysis(facts::TraceFacts facts, std::vector<facts::RankSummary> ranks,
                      const costs::LinkSources& links = {});

}  // namespace rankscope::job
