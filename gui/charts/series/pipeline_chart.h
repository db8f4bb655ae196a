// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/charts/series/pipeline_chains.h"
#include "gui/charts/series/step_table.h"

namespace rankscope::gui {

enum class PassKind : uint8_t { forward, backward, unknown };

/// A stage's work on one micro-batch.
struct PipelinePass {
    TimeRange range;  ///< first kernel's start to last kernel's end
    PassKind kind = PassKind::unknown;
    int number = 0;  ///< from 1: the how-manieth of its kind on the stage in the step; the micro-batch, where the stage
                     ///< is not interleaved
    ChartTarget target;  ///< its first kernel
};

struct PipelineStage {
    int32_t rank = 0;
    std::vector<PipelinePass> passes;  ///< by start
    double bubble =
        0;  ///< share of the rank's step: from the first pass of all stages to the last, what no pass of this one fills
};

/// One step of one pipeline: stages down, time across. Ready to draw.
struct PipelineChart {
    std::string nothing;  ///< why there is nothing to show; empty: there is
    std::string note;
    std::vector<PipelineChain> chains;
    size_t chain = 0;  ///< of chains, shown here
    std::vector<int32_t> steps;
    int32_t step = 0;
    TimeRange range;     ///< first pass to last, all stages
    int64_t stepNs = 0;  ///< of the first stage, what bubbles are shares of, as a finding's is
    std::vector<PipelineStage> stages;
    double bubble = 0;  ///< mean of the stages

    static constexpr size_t kMostStages = 256, kMostPasses = 20'000;
};

/// Passes are the kernels launched inside NVTX ranges named forward and backward; without such ranges the kernels
/// between two messages.
class PipelineCharts {
  public:
    /// One pass over the messages and steps. The chart of a chain and step reads only what lies in that step.
    explicit PipelineCharts(store::TraceReader& reader);
    /// A step below 0: one of median length. Thread-safe.
    PipelineChart chart(store::TraceReader& reader, size_t chain, int32_t step) const;

    /// The pipeline that a rank holds a stage of.
    std::optional<size_t> chainOf(int32_t rank) const;

  private:
    ChartJob m_job;
    std::vector<PipelineChain> m_chains;
    StepTable m_steps;
    bool m_anyMessages = false;
};

}  // namespace rankscope::gui
