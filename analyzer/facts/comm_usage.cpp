// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/comm_usage.h"

#include <algorithm>

namespace rankscope::facts {
namespace {

/// The communication a rank starts in a step of its analysed ones.
std::pair<std::vector<CommTask>::const_iterator, std::vector<CommTask>::const_iterator> tasksOf(
    const RankSummary& rank, const StepWindow& window) {
    const auto starts = [](const CommTask& task, int64_t ns) { return task.startNs < ns; };
    return {
        std::lower_bound(rank.communication.begin(), rank.communication.end(), window.startNs, starts),
        std::lower_bound(rank.communication.begin(), rank.communication.end(), window.startNs + window.durNs, starts)};
}

void dropTiny(CommUsage& usage) {
    int64_t largest = 0;
    for (const CommUseEvent& event : usage.events) largest = std::max(largest, event.bytes);
    const int64_t limit = std::max(CommUsage::kTinyBytes, largest / CommUsage::kTinyShare);
    usage.tiny += static_cast<int>(
        std::erase_if(usage.events, [limit](const CommUseEvent& e) { return e.bytes >= 0 && e.bytes <= limit; }));
}

}  // namespace

int CommUsage::count(store::Op op) const {
    return static_cast<int>(
        std::count_if(events.begin(), events.end(), [op](const CommUseEvent& e) { return e.op == op; }));
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
    double all = 0, still = 0;
    for (const CommUseEvent& event : events) {
        if (event.op != op) continue;
        ++all;
        still += static_cast<double>(event.computeMeanwhileNs) < kStill * static_cast<double>(event.durationNs);
    }
    return all > 0 ? still / all : 0;
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

std::map<int64_t, CommUsage> commUsages(const TraceFacts& facts, const std::vector<RankSummary>& ranks) {
    std::map<int64_t, CommUsage> usages;
    for (const RankSummary& rank : ranks) {
        const RankFacts* known = facts.findRank(rank.rank);
        const int index = known == nullptr ? -1 : typicalStep(rank, *known);
        if (index < 0) continue;
        const auto compute = static_cast<double>(rank.steps[static_cast<size_t>(index)].computeNs);
        const auto [first, last] = tasksOf(rank, known->steps[static_cast<size_t>(index)]);
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

}  // namespace rankscope::facts
