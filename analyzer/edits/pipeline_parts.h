// SPDX-License-Identifier: Apache-2.0
// The steps of a pipeline taken apart: what each stage does for one micro-batch forward and backward, what once per
// step, and its sends and receives.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "analyzer/edits/launch_index.h"
#include "analyzer/edits/pipeline_plan.h"
#include "analyzer/job/analysis.h"

namespace rankscope::edits {

/// Calls of the host, in order, each with what it put on the device.
using Calls = std::vector<replay::TaskId>;

/// Sends and receives of a group: (send, peer stage) of each.
using GroupMessages = std::multiset<std::pair<bool, int>>;

/// A group of sends and receives, as its call stands in the graph.
struct GroupCall {
    replay::TaskId call = replay::kNoTask;
    replay::TaskId arrival = replay::kNoTask;
    replay::TaskId transfer = replay::kNoTask;
    GroupMessages messages;
};

/// One rank's step.
struct StageStep {
    Calls head;                                    // before the first forward pass
    std::map<std::pair<int, int>, Calls> forward;  // by (chunk, micro-batch)
    std::map<std::pair<int, int>, Calls> backward;
    Calls tail;  // behind the last backward pass: sums of gradients, optimizer
    std::vector<GroupCall> groups;
};

class PipelineParts {
  public:
    /// Throws EditError where the job has no pipeline, or its messages do not come in the order of a known schedule.
    PipelineParts(const replay::TaskGraph& graph, const job::Analysis& analysis);

    const PipelineShape& shape() const { return m_shape; }
    const LaunchIndex& index() const { return m_index; }
    /// Stages by rank; every rank of the graph has one.
    const std::map<int, int>& stages() const { return m_stages; }
    /// The pipeline a rank is part of, as index into Layout::pipelines.
    int pipelineOf(int rank) const { return m_pipelines.at(rank); }
    int rankOf(int pipeline, int stage) const { return m_ranks.at({pipeline, stage}); }
    const std::vector<int>& steps() const { return m_steps; }
    const StageStep& step(int rank, int step) const { return m_parts.at({rank, step}); }
    /// What a call put on the device, arrivals without their transfers.
    const std::vector<replay::TaskId>& launchedBy(replay::TaskId call) const;
    /// The same for every rank of a stage: layers in a stage; 0 where kernels do not repeat.
    int layersPerStage(int rank) const;
    /// Cuts the calls of a whole stage's pass, all chunks, into equal numbers of layers. Throws EditError where layers
    /// do not divide.
    std::vector<Calls> cut(const Calls& calls, int parts) const;

  private:
    struct Run {
        Calls calls;  // work
        GroupCall call;
    };
    void findCalls();
    std::vector<Run> runsOf(int rank, const Calls& calls) const;
    void learnKeys();
    void take(int rank, int step);
    uint32_t keyOf(replay::TaskId kernel) const { return m_graph.info[kernel].detail; }
    /// Kernels of a call, with their time, by direction: over 0 forward, under 0 backward.
    double direction(replay::TaskId call) const;
    /// How many of the calls of two passes in a row belong to the first.
    size_t splitPoint(const Calls& calls, bool forwardFirst) const;

    const replay::TaskGraph& m_graph;
    LaunchIndex m_index;
    PipelineShape m_shape;
    std::map<int, int> m_stages, m_pipelines;
    std::map<std::pair<int, int>, int> m_ranks;  // by pipeline and stage
    std::vector<int> m_steps;
    std::vector<std::vector<replay::TaskId>> m_launched;  // by host task
    std::vector<std::vector<uint32_t>> m_messagesOf;      // by arrival: exchanges
    std::map<std::pair<int, int>, Calls> m_calls;         // by (rank, step)
    std::map<std::pair<int, int>, StageStep> m_parts;
    std::map<uint32_t, double> m_forwardNs, m_backwardNs;  // by kernel key, in work that is one pass only
};

}  // namespace rankscope::edits
