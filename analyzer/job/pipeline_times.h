// SPDX-License-Identifier: Apache-2.0
// What the stages of the pipelines did in a step, over all their tensor- and data-parallel ranks.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/facts/layout.h"

namespace rankscope::job {

struct RecordedJob;

/// Means over the ranks of one stage in one step.
struct StageTimes {
    double stepNs = 0;
    double workNs = 0;        // compute, copies and blocking communication inside the stage (tensor parallel, experts),
                              // without the optimizer
    double insideWaitNs = 0;  // of it, waiting for the other ranks of the stage
    double tailNs = 0;        // compute behind the last backward: the optimizer
    double bubbleNs = 0;      // waits in sends and receives, and idle for no reason of the host's
    double exposedTransferNs = 0;         // of sends and receives
    double largestExposedTransferNs = 0;  // of one of its ranks
};

struct PipelineStep {
    int step = 0;
    std::vector<StageTimes> stages;

    double stepNs() const;
    /// Mean over the stages.
    double bubbleShare() const;
};

struct PipelineTimes {
    // Schedule, micro-batches and virtual stages; pipelines of one job agree in them. None without a pipeline.
    std::optional<facts::Pipeline> shape;
    std::vector<std::vector<int>> ranks;  // by stage
    std::vector<PipelineStep> steps;      // analysed ones in which every stage was seen
    double transferNs = 0;                // median of one message

    bool empty() const { return steps.empty(); }
    std::vector<int> allRanks() const;
};

/// Pipelines that agree with the first one in stages, micro-batches and virtual stages are taken together. Empty
/// without a pipeline.
PipelineTimes timesOfPipelines(const RecordedJob& job);

}  // namespace rankscope::job
