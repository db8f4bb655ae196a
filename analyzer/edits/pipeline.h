// SPDX-License-Identifier: Apache-2.0
// What a pipeline stage does in which order: GPipe (arXiv:1811.06965), 1F1B and interleaved 1F1B (arXiv:2104.04473),
// with the grouping of sends and receives of Megatron-LM (core/pipeline_parallel/schedules.py), or of PyTorch
// (torch/distributed/pipelining/schedules.py), which differ where stages are interleaved.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {

struct PipelineShape {
    std::string schedule = "1f1b";  // gpipe | 1f1b | interleaved
    int stages = 1;
    int microBatches = 1;
    int virtualStages = 1;
    bool passByPass = false;  // interleaved: messages leave behind each pass, as in PyTorch; else behind a forward and
                              // a backward one together, as in Megatron-LM
};

/// Places count all virtual stages: place = chunk x stages + stage. An activation goes from its place to the next one,
/// a gradient to the one before.
struct PipelineMessage {
    bool activation = true;
    bool send = true;
    int micro = 0;
    int place = 0;  // of the sender
    int peerStage = 0;

    auto operator<=>(const PipelineMessage&) const = default;
};

enum class StepPart : uint8_t {
    head,  // before the first forward pass
    forward,
    backward,
    tail,  // behind the last backward pass: sums of gradients, optimizer
};

struct Pass {
    StepPart part = StepPart::head;
    int chunk = 0;
    int micro = 0;

    auto operator<=>(const Pass&) const = default;
};

/// What a stage does up to its next group of sends and receives.
struct PlannedRun {
    std::vector<Pass> work;
    std::vector<PipelineMessage> messages;  // behind it: one group; none behind the last run

    bool receives() const;
};

/// One stage's step. Interleaving needs micro-batches in multiples of the stages; see impossible().
std::vector<PlannedRun> planStage(const PipelineShape& shape, int stage);

/// Why there is no such pipeline; empty: there is.
std::string impossible(const PipelineShape& shape);

// The steps of a pipeline taken apart: what each stage does for one micro-batch forward and backward, what once per
// step, and its sends and receives.

/// Calls of the host, in order, each with what it put on the device.
using Calls = std::vector<TaskId>;

/// Sends and receives of a group: (send, peer stage) of each.
using GroupMessages = std::multiset<std::pair<bool, int>>;

/// A group of sends and receives, as its call stands in the graph.
struct GroupCall {
    TaskId call = kNoTask;
    TaskId arrival = kNoTask;
    TaskId transfer = kNoTask;
    GroupMessages messages;
};

/// One rank's step.
struct StageStep {
    std::map<Pass, Calls> passes;
    std::vector<GroupCall> groups;
};

/// Who works on which stage of which pipeline.
struct PipelinePlaces {
    std::map<int, int> stages, pipelines;      // by rank; pipelines as index into Layout::pipelines
    std::map<std::pair<int, int>, int> ranks;  // by pipeline and stage

    int neighbour(int rank, int stage) const { return ranks.at({pipelines.at(rank), stage}); }
};

class PipelineParts {
  public:
    /// Throws EditError where the job has no pipeline, or in no step its messages come in the order of a known
    /// schedule. `graph` must outlive it.
    PipelineParts(const TaskGraph& graph, const Analysis& analysis);

    const PipelineShape& shape() const { return m_shape; }
    /// The stream of a rank that computes most; kNoLane for one that computes nothing.
    uint32_t computeLane(int rank) const;
    /// Every rank of the graph has one.
    const PipelinePlaces& places() const { return m_places; }
    /// Those in a row that keep to the schedule. In a first step PyTorch's stages also tell each other the shapes of
    /// their tensors.
    const std::vector<int>& steps() const { return m_steps; }
    /// Whether steps were recorded that are no part of steps().
    bool leavesOut() const { return m_steps.size() < m_recordedSteps; }
    const StageStep& step(int rank, int step) const { return m_parts.at({rank, step}); }
    /// What a call put on the device, arrivals without their transfers.
    std::span<const TaskId> launchedBy(TaskId call) const { return m_launched.of(call); }
    /// The kernels among it.
    std::vector<TaskId> kernelsOf(const Calls& calls) const;
    /// The same for every rank of a stage: layers in a stage; 0 where kernels do not repeat.
    int layersPerStage(int rank) const;
    /// Cuts the calls of a whole stage's pass, all chunks, into equal numbers of layers. Throws EditError where layers
    /// do not divide.
    std::vector<Calls> cut(const Calls& calls, int parts) const;

  private:
    struct Run {
        Calls calls;  // work
        GroupCall group;
    };
    using KernelTimes = std::vector<std::optional<double>>;  // by kernel key: ns; none: there is no such kernel
    void findSteps();
    void findCalls(const NumbersByTask& messagesOf);
    /// As m_shape has them now.
    void planStages();
    void keepStepsOfTheSchedule();
    /// The longest run of steps that keep to the schedule as m_shape groups its messages. `why`: what the first one
    /// lacks, where it is empty.
    std::vector<int> stepsOfTheSchedule(std::string& why) const;
    /// Why a rank's step is none of the schedule; empty: it is.
    std::string whyNotOfTheSchedule(int rank, int step) const;
    /// As planStage() has them. `messagesOf`: by arrival.
    std::vector<Run> runsOf(int rank, const Calls& calls, const NumbersByTask& messagesOf) const;
    /// As m_shape has it.
    const std::vector<PlannedRun>& planOf(int rank) const {
        return m_plans[static_cast<size_t>(m_places.stages.at(rank))];
    }
    void learnKeys();
    StageStep taken(int rank, std::vector<Run> runs) const;
    template <typename Function>
    void forEachKernel(TaskId call, Function&& function) const {
        for (TaskId task : launchedBy(call))
            if (m_graph.info[task].kind == TaskKind::kernel) function(task);
    }
    uint32_t keyOf(TaskId kernel) const { return m_graph.info[kernel].detail; }
    /// What kernels like this one take in all of such passes; none: there are none.
    std::optional<double> timeIn(const KernelTimes& passes, TaskId kernel) const {
        return keyOf(kernel) < passes.size() ? passes[keyOf(kernel)] : std::nullopt;
    }
    /// Kernels of a call, with their time, by direction: over 0 forward, under 0 backward.
    double direction(TaskId call) const;
    /// How many of the calls of two passes in a row belong to the first.
    size_t splitPoint(const Calls& calls, bool forwardFirst) const;

    const TaskGraph& m_graph;
    PipelineShape m_shape;
    std::vector<std::vector<PlannedRun>> m_plans;  // by stage
    PipelinePlaces m_places;
    std::map<int, uint32_t> m_computeLanes;  // by rank
    std::vector<int> m_steps;
    size_t m_recordedSteps = 0;
    NumbersByTask m_launched;                                // by host task
    std::map<std::pair<int, int>, std::vector<Run>> m_runs;  // by (rank, step), until they are taken apart
    std::map<std::pair<int, int>, StageStep> m_parts;
    KernelTimes m_forwardNs, m_backwardNs;  // in work that is one pass only, until all is taken apart
};

/// Of a TrialGraph what is read to make it anew. It is given away: what nobody else keeps is freed before the new graph
/// is made.
struct PresentPipeline {
    std::shared_ptr<const PipelineParts> parts;
    std::shared_ptr<const Schedule> schedule;
};

/// `steps`, some in a row of those recorded, with another schedule: kernels, copies, calls of the host and
/// collectives of a pass move as they are, sends and receives are made anew with the measured times of the present
/// ones. What comes before the first step is left out, and of what comes behind the last one all but its beginning.
/// What the host reads back behind the last backward pass, at least once for each micro-batch, may be their losses: the
/// dear outlook has as many more of it as there are more micro-batches.
/// `size`: of a micro-batch, as a multiple of the recorded ones'. Kernels, copies and messages of a pass take that
/// share of their time, calls of the host and sums of gradients what they take now. Gradients of a micro-batch are
/// added to those before it, which takes as long for a smaller one: kernels that all backward passes but the first of a
/// step have are taken for these additions. Where there are none they may be in the first one, too: at worst (the dear
/// outlook) one takes as long as what the step does behind its last backward pass, which reads and writes each weight
/// more often. Throws EditError.
TaskGraph rebuildPipeline(const TrialGraph& of, PresentPipeline present, const PipelineShape& shape, double size,
                          const std::vector<int>& steps, EditEffect& effect);

/// A pipeline with other micro-batches, other virtual stages, or another schedule. More micro-batches of the present
/// size are more tokens: EditEffect::tokens.
struct PipelineOrder {
    std::optional<int> microBatches;
    std::optional<int> virtualStages;
    std::optional<std::string> schedule;  // gpipe | 1f1b | interleaved
    bool keepsBatch = false;              // more micro-batches are smaller ones
};
std::unique_ptr<Edit> pipelineInOrder(PipelineOrder to);

}  // namespace rankscope::edits
