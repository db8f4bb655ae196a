// SPDX-License-Identifier: Apache-2.0
// How the job was split over its ranks, told from communicators, operations and who sends to whom. What the evidence does not show stays empty.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/timeline/rank_summary.h"
#include "analyzer/timeline/trace_facts.h"

namespace rankscope::analyzer {

/// What a communicator is used for.
enum class CommRole : uint8_t {
    unknown,
    gradients,          // all-reduce (or reduce-scatter) in or behind the backward pass: data parallel, ZeRO 0 to 2
    shardedParameters,  // all-gathers before compute and reduce-scatters behind it: FSDP, ZeRO-3
    activations,        // all-reduces that compute waits for, all through the step: tensor parallel
    experts,            // all-to-all
};

struct Pipeline {
    std::vector<int> stages;  // rank of each stage, first stage first
    int microBatches = 0;     // per step; 0 unknown
    int virtualStages = 1;
    std::string schedule = "unknown";  // gpipe | 1f1b | unknown

    /// Idle share of the schedule itself: (P-1) / (M V + P-1) (GPipe, arXiv:1811.06965; interleaving, arXiv:2104.04473). 0 when M is unknown.
    double theoreticalBubble() const;
};

struct Layout {
    std::optional<int> dp, tp, pp, ep, zero;
    std::string schedule = "unknown";
    double confidence = 0;
    std::map<int64_t, CommRole> roles;  // by communicator
    std::vector<Pipeline> pipelines;

    CommRole role(int64_t communicator) const;
    const Pipeline* pipelineOf(int rank) const;
};

Layout inferLayout(const TraceFacts& facts, const std::vector<RankSummary>& ranks);

/// Pipelines from send/recv alone: chains of ranks in which each talks to its neighbours only.
std::vector<Pipeline> findPipelines(const TraceFacts& facts);

}  // namespace rankscope::analyzer
