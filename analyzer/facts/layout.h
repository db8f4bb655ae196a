// SPDX-License-Identifier: Apache-2.0
// Describes how the job was split over its ranks, as communicators, operations and who sends to whom show it. What the
// evidence does not show stays empty.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::facts {

/// Says what a communicator, or one operation on it, is used for.
enum class CommRole : uint8_t {
    unknown,
    gradients,          // all-reduce or reduce-scatter in or behind the backward pass, with the all-gather of updated
                        // parameters behind it: data parallel, ZeRO 0 to 2
    shardedParameters,  // all-gathers before compute and reduce-scatters behind it: FSDP, ZeRO-3, the inner group of
                        // HSDP
    activations,  // all-reduces, or all-gather and reduce-scatter pairs, that compute waits for, all through the step:
                  // tensor and sequence parallel
    experts,      // all-to-all of tokens, forward and backward
    pipeline,     // activations and their gradients between neighbouring stages
    replicas,     // all-reduce of already sharded gradients: the outer group of HSDP
    control,      // tiny or outside of the steps: loss values, flags, barriers, initial broadcasts
};
std::string_view toText(CommRole role);

/// Says what one operation of a communicator is used for. All-to-alls made of grouped sends appear as Op::allToAll and
/// as Op::send.
struct CommUse {
    CommRole role = CommRole::unknown;
    double confidence = 0;  // 0..1
};

struct Pipeline {
    std::vector<int> stages;  // rank of each stage, first stage first
    int microBatches = 0;     // per step; 0 unknown
    int virtualStages = 1;
    std::string schedule = "unknown";  // gpipe | 1f1b | interleaved | unknown
    double confidence = 0;

    /// Returns the idle share of the schedule itself: (P-1) / (M V + P-1) (GPipe, arXiv:1811.06965; interleaving,
    /// arXiv:2104.04473). 0 when M is unknown.
    double theoreticalBubble() const;
    /// Returns the index of the stage a rank holds (with interleaving its first one), -1 when it is not part of this
    /// pipeline.
    int stageOf(int rank) const;
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(Pipeline& value, const Visit& visit) {
    auto& [stages, microBatches, virtualStages, schedule, confidence] = value;
    visit(stages, microBatches, virtualStages, schedule, confidence);
}

struct Layout {
    std::optional<int> dp, tp, pp, ep;  // degrees
    std::optional<int> sp;  // sequence-parallel ranks: the tensor-parallel group when activations travel as all-gather
                            // and reduce-scatter
    std::optional<int> zero;              // stage 0..3; HSDP is 3 with replicas
    std::optional<int> zeroOr;            // stage that communicates no differently in this job
    std::optional<int> shard, replicate;  // ranks that share one copy of the state, and copies; HSDP has both above 1
    std::string schedule = "unknown";
    double confidence = 0;                                 // of the whole
    std::map<std::string, double> confidences;             // of dp, tp, pp, ep, sp, zero, schedule where said
    std::map<int64_t, CommRole> roles;                     // by communicator: the role of the operation that moves most
    std::map<int64_t, std::map<store::Op, CommUse>> uses;  // by communicator and operation
    std::vector<Pipeline> pipelines;

    CommRole role(int64_t communicator) const;
    CommRole role(int64_t communicator, store::Op op) const;
    CommRole role(const CommTask& task) const { return role(task.communicatorId, task.op); }
    const Pipeline* pipelineOf(int rank) const;
    /// Returns the stage of the rank, -1 outside of all pipelines.
    int stageOf(int rank) const;
    /// Returns all ranks that hold a stage, over all pipelines (tensor- and data-parallel peers), by rank.
    std::vector<int> ranksOfStage(int stage) const;
};

Layout inferLayout(const TraceFacts& facts, std::span<const RankSummary> ranks);

/// Names each communicator for a reader, by id: its role and its ranks, "tensor parallel 0-3", "data parallel 0,4";
/// NCCL's own name instead of a role that is unknown. No two of a run have the same name: where role and ranks are the
/// same, the id stands behind them.
std::map<int64_t, std::string> communicatorNames(const TraceFacts& facts, const Layout& layout);

/// Names one of them; "communicator 5" for an id that the run does not have.
std::string communicatorName(const TraceFacts& facts, const Layout& layout, int64_t id);

/// Says what sends and receives are used for.
struct Exchanges {
    std::vector<Pipeline> pipelines;   // by first rank of the first stage
    std::map<int64_t, CommUse> roles;  // of sends and receives, by communicator
};

/// Finds pipelines: chains of ranks in which each talks to its neighbours only, closed to a ring by interleaved
/// schedules. Where all members of a communicator send to each other at once, an all-to-all is made of sends: experts.
/// A ring in one direction is neither. n log n in the messages of one step.
Exchanges findExchanges(const TraceFacts& facts, std::span<const RankSummary> ranks);

/// Returns the pipelines that an imported file told (meta told_pipelines): schedule and micro-batches, then the ranks
/// of each by stage, "1f1b 16;0 1 2 3;4 5 6 7". Empty where it tells none.
std::vector<Pipeline> toldPipelines(const TraceFacts& facts);

}  // namespace rankscope::facts
