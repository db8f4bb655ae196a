// SPDX-License-Identifier: Apache-2.0
#include "analyzer/timeline/layout.h"

#include <algorithm>

namespace rankscope::analyzer {
namespace {

/// How a communicator is used in a step, seen from one member.
struct Usage {
    int allReduces = 0, allGathers = 0, reduceScatters = 0, allToAlls = 0;
    int earlyAllReduces = 0;  // before a fifth of the step's compute: a forward pass has not ended by then
    int earlyAllGathers = 0;
    int64_t allReduceNs = 0, exposedAllReduceNs = 0;
};

Usage usageOf(const RankSummary& rank, const RankFacts& facts, int64_t communicator) {
    Usage usage;
    int64_t compute = 0;
    int step = -1;
    for (size_t i = 0; i < facts.steps.size(); ++i) {
        if (facts.steps[i].warmUp || rank.steps[i].computeNs == 0) continue;
        step = facts.steps[i].step;
        compute = rank.steps[i].computeNs;
        break;
    }
    int64_t largest = 0;
    for (const CommTask& task : rank.communication)
        if (task.communicatorId == communicator && task.step == step) largest = std::max(largest, task.bytes);
    for (const CommTask& task : rank.communication) {
        if (task.communicatorId != communicator || task.step != step || step < 0) continue;
        if (task.bytes >= 0 && task.bytes * 1000 < largest) continue;  // a loss value or a flag says nothing about the layout
        const bool early = task.computeBeforeNs * 5 < compute;
        if (task.op == store::Op::allReduce) {
            ++usage.allReduces;
            usage.earlyAllReduces += early;
            usage.allReduceNs += task.transferNs();
            usage.exposedAllReduceNs += task.exposedTransferNs;
        }
        if (task.op == store::Op::allGather) {
            ++usage.allGathers;
            usage.earlyAllGathers += early;
        }
        usage.reduceScatters += task.op == store::Op::reduceScatter;
        usage.allToAlls += task.op == store::Op::allToAll;
    }
    return usage;
}

CommRole roleOf(const Usage& usage) {
    if (usage.allGathers > 0 && usage.reduceScatters > 0 && usage.earlyAllGathers > 0 && usage.allGathers > usage.reduceScatters)
        return CommRole::shardedParameters;
    if (usage.allToAlls > usage.allReduces) return CommRole::experts;
    const bool computeWaits = usage.exposedAllReduceNs * 5 > usage.allReduceNs * 4;
    if (usage.allReduces >= 4 && usage.earlyAllReduces > 0 && computeWaits) return CommRole::activations;
    if (usage.allReduces > 0 || usage.reduceScatters > 0) return CommRole::gradients;
    return CommRole::unknown;
}

}  // namespace

std::string_view toText(CommRole role) {
    switch (role) {
        case CommRole::gradients: return "gradients";
        case CommRole::shardedParameters: return "sharded_parameters";
        case CommRole::activations: return "activations";
        case CommRole::experts: return "experts";
        case CommRole::pipeline: return "pipeline";
        case CommRole::replicas: return "replicas";
        case CommRole::control: return "control";
        case CommRole::unknown: break;
    }
    return "unknown";
}

int Pipeline::stageOf(int rank) const {
    const auto at = std::find(stages.begin(), stages.end(), rank);
    return at == stages.end() ? -1 : static_cast<int>(at - stages.begin());
}

int Layout::stageOf(int rank) const {
    const Pipeline* pipeline = pipelineOf(rank);
    return pipeline == nullptr ? -1 : pipeline->stageOf(rank);
}

std::vector<int> Layout::ranksOfStage(int stage) const {
    std::vector<int> ranks;
    for (const Pipeline& pipeline : pipelines)
        if (stage >= 0 && static_cast<size_t>(stage) < pipeline.stages.size()) ranks.push_back(pipeline.stages[static_cast<size_t>(stage)]);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

CommRole Layout::role(int64_t communicator, store::Op op) const {
    const auto at = uses.find(communicator);
    if (at == uses.end()) return CommRole::unknown;
    const auto use = at->second.find(op);
    return use == at->second.end() ? CommRole::unknown : use->second.role;
}

CommRole Layout::role(int64_t communicator) const {
    const auto at = roles.find(communicator);
    return at == roles.end() ? CommRole::unknown : at->second;
}

const Pipeline* Layout::pipelineOf(int rank) const {
    for (const Pipeline& pipeline : pipelines)
        if (std::find(pipeline.stages.begin(), pipeline.stages.end(), rank) != pipeline.stages.end()) return &pipeline;
    return nullptr;
}

Layout inferLayout(const TraceFacts& facts, const std::vector<RankSummary>& ranks) {
    Layout layout;
    layout.pipelines = findPipelines(facts, ranks);
    if (!layout.pipelines.empty()) {
        layout.pp = static_cast<int>(layout.pipelines.front().stages.size());
        layout.schedule = layout.pipelines.front().schedule;
    }
    bool anyRole = false;
    for (const auto& [id, communicator] : facts.communicators) {
        if (communicator.size < 2) continue;
        for (const RankSummary& rank : ranks) {
            if (std::find(communicator.ranks.begin(), communicator.ranks.end(), rank.rank) == communicator.ranks.end()) continue;
            const RankFacts* known = facts.findRank(rank.rank);
            const Usage usage = usageOf(rank, *known, id);
            const CommRole role = roleOf(usage);
            if (role == CommRole::unknown) break;
            anyRole = true;
            layout.roles[id] = role;
            if (role == CommRole::gradients) {
                layout.dp = std::max(layout.dp.value_or(1), communicator.size);
                // ZeRO-1 and 2 also scatter the gradients; which of the two it is does not show in the communication.
                if (!layout.zero && usage.reduceScatters == 0) layout.zero = 0;
            }
            if (role == CommRole::shardedParameters) {
                layout.dp = std::max(layout.dp.value_or(1), communicator.size);
                layout.zero = 3;
            }
            if (role == CommRole::activations) layout.tp = std::max(layout.tp.value_or(1), communicator.size);
            if (role == CommRole::experts) layout.ep = std::max(layout.ep.value_or(1), communicator.size);
            break;
        }
    }
    if (!anyRole && layout.pipelines.empty()) return layout;
    // A degree nothing speaks for is 1 when the others explain every rank.
    const int world = static_cast<int>(facts.ranks.size());
    const int explained = layout.dp.value_or(1) * layout.tp.value_or(1) * layout.pp.value_or(1);
    if (explained == world) {
        layout.dp = layout.dp.value_or(1);
        layout.tp = layout.tp.value_or(1);
        layout.pp = layout.pp.value_or(1);
        layout.ep = layout.ep.value_or(1);
        layout.confidence = 0.9;
    } else {
        layout.confidence = 0.4;
    }
    return layout;
}

}  // namespace rankscope::analyzer
