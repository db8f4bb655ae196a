// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::facts {

/// Plays a pipeline's step: every stage runs its schedule, an action starts when the stage is free and its input has
/// arrived. It answers how long the step would be with other micro-batches, balanced stages or faster transfers.
struct PipelineModel {
    std::string schedule = "1f1b";  // gpipe | 1f1b | interleaved; anything else runs as 1f1b
    int microBatches = 1;
    int virtualStages = 1;
    std::vector<double> stageNs;  // work of each stage on one micro-batch, forward and backward, all its virtual stages
    double transferNs = 0;        // of one activation or gradient between neighbours

    static constexpr double kForwardShare = 1.0 / 3;  // backward costs twice the forward's flop

    /// Returns the time from the first forward to the last backward of any stage. Linear in stages x micro-batches x
    /// virtual stages.
    double makespanNs() const;
    /// Returns the same stages with equal work.
    PipelineModel balanced() const;
};

}  // namespace rankscope::facts
