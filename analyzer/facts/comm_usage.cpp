// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/comm_usage.h"

#include <algorithm>
#include <utility>

#include "analyzer/facts/statistics.h"

namespace rankscope::facts {
namespace {

void dropTiny(CommUsage& usage) {
    int64_t largest = 0;
    for (const CommUseEvent& event : usage.events) largest = std::max(largest, event.bytes);
    const int64_t limit = std::max(CommUsage::kTinyBytes, largest / CommUsage::kTinyShare);
    usage.tiny += static_cast<int>(
        std::erase_if(usage.events, [limit](const CommUseEvent& e) { return e.bytes >= 0 && e.bytes <= limit; }));
}

using store::Op;

constexpr int kFewestActivations = 4;  // a layer has two in forward and two in backward (Megatron-LM, arXiv:1909.08053)
// Compute stands still beside this share of activations: those of forward; in backward the weights' gradients may fill
// the time.
constexpr double kBlocking = 0.4;
// The first of them comes within this many gaps, half a layer into forward, as the others follow each other; gradients
// wait for backward.
constexpr double kFirstAfterGaps = 1.5;
constexpr double kApart = 0.7;       // of them have compute in front: gradients that do not overlap leave in a row
constexpr double kNoCompute = 1e-4;  // of the step's compute: nothing ran in between
// Backward, which takes twice as long as forward, ends behind this share of the step's compute.
constexpr double kMiddle = 0.5;
// This share of the step's compute is all there is between the last gradient and the parameters that come back.
constexpr double kOptimizer = 0.05;
constexpr double kSameSize = 0.7;  // of them carry the same bytes: activations of one micro-batch

double shareOfCommonSize(const CommUsage& usage, Op op) {
    std::map<int64_t, int> counts;
    int most = 0;
    for (const CommUseEvent& event : usage.events)
        if (event.op == op) most = std::max(most, ++counts[event.bytes]);
    return most > 0 ? static_cast<double>(most) / usage.count(op) : 0;
}

/// Tells activations: many messages of one size, each between two stretches of compute that stands still meanwhile,
/// from the first layers of forward on.
bool looksLikeActivations(const CommUsage& usage, Op op) {
    const std::vector<double> at = usage.positions(op);
    if (static_cast<int>(at.size()) < kFewestActivations || usage.blocking(op) < kBlocking ||
        shareOfCommonSize(usage, op) < kSameSize)
        return false;
    std::vector<double> gaps;
    for (size_t i = 1; i < at.size(); ++i) gaps.push_back(at[i] - at[i - 1]);
    const auto apart = std::ranges::count_if(gaps, [](double gap) { return gap > kNoCompute; });
    if (static_cast<double>(apart) < kApart * static_cast<double>(gaps.size())) return false;
    if (at.front() > kFirstAfterGaps * median(gaps)) return false;
    // One message behind each micro-batch's backward also comes at an even pace; halves of layers differ, and backward
    // from forward.
    std::ranges::sort(gaps);
    return gaps[gaps.size() * 3 / 4] > 1.2 * gaps[gaps.size() / 4];
}

/// Counts all-gathers and reduce-scatters in the order they start.
struct GatherOrder {
    int front = 0;   // all-gathers before the first reduce-scatter
    int middle = 0;  // between the first and the last
    int behind = 0;  // after the last
    int scatters = 0;
};

GatherOrder gatherOrder(const CommUsage& usage) {
    GatherOrder order;
    int sinceLast = 0;
    for (const CommUseEvent& event : usage.events) {
        if (event.op == Op::reduceScatter)
            (order.scatters++ > 0 ? order.middle : order.front) += std::exchange(sinceLast, 0);
        if (event.op == Op::allGather) ++sinceLast;
    }
    order.behind = sinceLast;
    return order;
}

bool looksLikeSequenceParallel(const CommUsage& usage, const GatherOrder& order) {
    // The two take turns all through the step; gradients leave in a row, and parameters return in one.
    if (order.scatters < kFewestActivations || order.front > 2 || order.middle * 2 < order.scatters) return false;
    return usage.blocking(Op::allGather) > kBlocking && usage.blocking(Op::reduceScatter) > kBlocking &&
           shareOfCommonSize(usage, Op::reduceScatter) >= kSameSize;
}

/// Tells sums of pooled rows of sharded embedding tables in forward, and their gradients gathered in backward
/// (TorchRec's row-wise sharding): the last reduce-scatter lies in forward, and a stretch of compute lies between it
/// and the all-gathers.
bool looksLikePooledRows(const CommUsage& usage) {
    const double lastSum = usage.positions(Op::reduceScatter).back();
    const std::vector<double> gathers = usage.positions(Op::allGather);
    return lastSum < kMiddle &&
           std::ranges::all_of(gathers, [lastSum](double at) { return at - lastSum > kOptimizer; });
}

void sayGatherAndScatter(const CommUsage& usage, RoleEvidence& evidence) {
    const GatherOrder order = gatherOrder(usage);
    if (looksLikePooledRows(usage)) return;
    const auto say = [&](CommRole gather, CommRole scatter, double confidence) {
        evidence.uses[Op::allGather] = {gather, confidence};
        evidence.uses[Op::reduceScatter] = {scatter, confidence};
    };
    if (looksLikeSequenceParallel(usage, order)) {
        evidence.sequenceParallel = true;
        return say(CommRole::activations, CommRole::activations, 0.9);
    }
    // Parameters are gathered for forward and again for backward: nothing stays whole (ZeRO, arXiv:1910.02054, stage
    // 3).
    if (order.middle > 0 || order.front > order.scatters) {
        evidence.zero = 3;
        evidence.zeroConfidence = 0.9;
        return say(CommRole::shardedParameters, CommRole::shardedParameters, 0.9);
    }
    // A reduce-scatter in backward and one all-gather of the updated parameters are stage 2, or a stage 1 that sends no
    // more than it must.
    evidence.zero = 2;
    evidence.zeroConfidence = 0.6;
    if (order.front > order.behind) {
        // Gathered layer by layer in the next forward pass: so does a stage 3 that has room to keep them until backward
        // (FSDP's reshard_after_forward=False, DeepSpeed's stage3_max_live_parameters).
        evidence.zeroOr = 3;
        return say(CommRole::shardedParameters, CommRole::gradients, 0.7);
    }
    say(CommRole::gradients, CommRole::gradients, 0.9);
}

void sayAllReduce(const CommUsage& usage, RoleEvidence& evidence) {
    if (looksLikeActivations(usage, Op::allReduce)) {
        evidence.uses[Op::allReduce] = {CommRole::activations, 0.9};
        return;
    }
    evidence.uses[Op::allReduce] = {CommRole::gradients, 0.8};
    if (evidence.zero) return;
    const int64_t reduced = usage.bytes(Op::allReduce);
    for (Op op : {Op::allGather, Op::broadcast}) {
        const int64_t returned = usage.bytes(op);
        const bool behind = usage.count(op) > 0 && usage.positions(op).back() >= usage.positions(Op::allReduce).back();
        // Every rank updates its share of the parameters and hands it out.
        if (!behind || reduced < 0 || returned * 4 < reduced) continue;
        evidence.uses[op] = {CommRole::gradients, 0.8};
        evidence.zero = 1;
        evidence.zeroConfidence = 0.85;
        evidence.zeroOr = 2;  // DeepSpeed's stage 2 reduces whole buckets, too, and drops what is not its rank's
        return;
    }
    evidence.zero = 0;
    evidence.zeroConfidence = 0.8;
}

void sayAllToAll(const CommUsage& usage, RoleEvidence& evidence) {
    const int count = usage.count(Op::allToAll);
    // Experts dispatch and combine, forward and backward: four exchanges a layer and micro-batch. Other counts are
    // other exchanges, such as embedding tables.
    evidence.uses[Op::allToAll] = {CommRole::experts, count % 4 == 0 ? 0.8 : 0.4};
}

}  // namespace

int CommUsage::count(store::Op op) const {
    return static_cast<int>(std::ranges::count_if(events, [op](const CommUseEvent& e) { return e.op == op; }));
}

int64_t CommUsage::bytes(store::Op op) const {
    int64_t sum = 0;
    for (const CommUseEvent& event : events) {
        if (event.op != op) continue;
        if (event.bytes < 0) return -1;
        sum += event.bytes;
    }
    return sum;
}

double CommUsage::blocking(store::Op op) const {
    const auto still = std::ranges::count_if(events, [op](const CommUseEvent& e) {
        return e.op == op && static_cast<double>(e.computeMeanwhileNs) < kStill * static_cast<double>(e.durationNs);
    });
    return still > 0 ? static_cast<double>(still) / count(op) : 0;
}

std::vector<double> CommUsage::positions(store::Op op) const {
    std::vector<double> result;
    for (const CommUseEvent& event : events)
        if (event.op == op) result.push_back(event.position);
    return result;
}

int typicalStep(const RankSummary& rank, const RankFacts& facts) {
    std::vector<size_t> analysed;
    for (size_t i = 0; i < facts.steps.size() && i < rank.steps.size(); ++i)
        if (!facts.steps[i].warmUp && rank.steps[i].computeNs > 0) analysed.push_back(i);
    return analysed.empty() ? -1 : static_cast<int>(analysed[analysed.size() / 2]);
}

std::map<int64_t, CommUsage> commUsages(const TraceFacts& facts, std::span<const RankSummary> ranks) {
    std::map<int64_t, CommUsage> usages;
    for (const RankSummary& rank : ranks) {
        const RankFacts* known = facts.findRank(rank.rank);
        const int index = known == nullptr ? -1 : typicalStep(rank, *known);
        if (index < 0) continue;
        const auto compute = static_cast<double>(rank.steps[static_cast<size_t>(index)].computeNs);
        const StepWindow& step = known->steps[static_cast<size_t>(index)];
        const auto first = std::ranges::lower_bound(rank.communication, step.startNs, {}, &CommTask::startNs);
        const auto last = std::ranges::lower_bound(rank.communication, step.endNs(), {}, &CommTask::startNs);
        for (auto task = first; task != last; ++task) {
            CommUsage& usage = usages[task->communicatorId];
            if (usage.rank < 0) usage.rank = rank.rank;
            if (usage.rank != rank.rank) continue;
            usage.events.push_back({task->op, task->bytes, static_cast<double>(task->computeBeforeNs) / compute,
                                    task->endNs - task->startNs, task->computeAtEndNs - task->computeBeforeNs});
        }
    }
    for (auto& [id, usage] : usages) dropTiny(usage);
    return usages;
}

RoleEvidence rolesOf(const CommUsage& usage) {
    RoleEvidence evidence;
    const int gathers = usage.count(Op::allGather), scatters = usage.count(Op::reduceScatter);
    if (usage.count(Op::allToAll) > 0) sayAllToAll(usage, evidence);
    if (gathers > 0 && scatters > 0)
        sayGatherAndScatter(usage, evidence);
    else if (scatters > 0)
        evidence.uses[Op::reduceScatter] = {CommRole::gradients, 0.6};
    if (usage.count(Op::allReduce) > 0) sayAllReduce(usage, evidence);
    if (gathers > 1 && scatters == 0 && evidence.uses.count(Op::allGather) == 0 && usage.count(Op::allReduce) == 0)
        evidence.uses[Op::allGather] = {CommRole::shardedParameters, 0.4};
    for (const CommUseEvent& event : usage.events)
        if (event.op == Op::broadcast || event.op == Op::reduce)
            evidence.uses.try_emplace(event.op, CommUse{CommRole::control, 0.5});
    if (usage.events.empty() && usage.tiny > 0) evidence.uses[Op::unknown] = {CommRole::control, 0.8};
    return evidence;
}

}  // namespace rankscope::facts
