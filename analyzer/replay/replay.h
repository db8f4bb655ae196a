// SPDX-License-Identifier: Apache-2.0
// Plays the job again from its own task graph: recorded durations and host work, waits computed anew. What an edit
// saves is the difference of two replays.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/replay/critical_path.h"
#include "analyzer/replay/rank_tasks.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::replay {

struct ReplayModel {
    // Says why there is no replay; empty: there is. Nothing may be predicted without one.
    std::string unavailable = "the trace was not replayed";
    std::string partNote;            // of the notes the one of what is replayed; empty: all
    std::vector<std::string> notes;  // what had to be inferred, and what was left out
    TaskGraph graph;
    Schedule unchanged;        // of `graph`; empty in a process that plays changes of another's analysis
    std::vector<int> leftOut;  // ranks that others stand for (replicas.h), sorted: `graph` does not have them
    std::vector<int> steps;    // numbers of the analysed steps; of a trace too long to be held (ReplayWindow), those of
                               // its last ones that were replayed
    std::vector<double> unchangedStepsNs;  // of each of `steps`, in `unchanged`, from start to start
    double measuredStepNs = 0;             // mean over them, from start to start
    double predictedStepNs = 0;            // the same of `unchanged`
    std::vector<PathShare> path;           // critical path through these steps, of `unchanged`
    EdgeCounts edges;

    bool available() const { return unavailable.empty(); }
    bool hasLeftOut(int rank) const { return std::ranges::binary_search(leftOut, rank); }
    /// Whether all of them are left out.
    bool hasLeftOut(const std::vector<int>& ranks) const {
        return !ranks.empty() && std::ranges::all_of(ranks, [this](int rank) { return hasLeftOut(rank); });
    }
    /// Plays `graph`: sets `unchanged`, and of it `unchangedStepsNs` and `predictedStepNs`, which are those of `steps`.
    void playUnchanged();
    /// Returns the error as a share of the measured step.
    double error() const;
    /// Returns the mean step time, ns, of another schedule of this graph, or of an edited graph, over the analysed
    /// steps.
    double stepNs(const TaskGraph& of, const Schedule& schedule) const;
    /// Returns the step times of the analysed steps, in their order.
    std::vector<double> stepsNs(const TaskGraph& of, const Schedule& schedule) const;
};

/// Replays the job from the tasks of every recorded rank; `steps` are the analysed ones. Says in `unavailable` what a
/// trace lacks rather than to predict from it.
ReplayModel replay(const facts::TraceFacts& facts, std::vector<RankTasks> ranks, const std::vector<int>& steps,
                   const ReplayWindow& window = {});

/// Holds the ranks' tasks as one graph, in which collectives, sends and receives join them: phase 2 of the replay.
struct JoinedRanks {
    std::string problem;  // why there is no graph; empty: there is
    TaskGraph graph;
};

/// Takes the ranks' tasks apart.
JoinedRanks joinRanks(std::vector<RankTasks> ranks, const facts::TraceFacts& facts);

}  // namespace rankscope::replay
