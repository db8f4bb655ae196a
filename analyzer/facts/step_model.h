// SPDX-License-Identifier: Apache-2.0
// Models a step on paper: that of one rank, and that of a pipeline.
#pragma once

#include <string>
#include <vector>

#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

struct ModelTask {
    double readyAt = 0;  // compute progress (ns of compute done) at which its data is there
    double durationNs = 0;
    double neededAt = 0;  // compute progress that cannot be passed before it has ended
    double lagNs = 0;     // how long after its data the host calls it
};

/// Returns the step time, ns, of one rank as compute that progresses (`computeNs` in total) and a network that carries
/// one collective after the other, in order. It answers how much shorter a step gets when compute is faster,
/// collectives are merged or start earlier. Waiting for other ranks is no part of it: it describes the rank the others
/// wait for. Linear but for a sort by neededAt.
double modelStepNs(const std::vector<ModelTask>& tasks, double computeNs);

/// Returns the tasks of one step of one rank as they were recorded. All-gathers are needed where the next one of their
/// communicator starts (its consumer issues it: prefetching), or at once when compute stood still behind them; the
/// others where the last of them ends: at the optimizer, which all-gathers of new parameters may follow.
std::vector<ModelTask> modelTasks(const std::vector<CommTask>& tasks);

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
