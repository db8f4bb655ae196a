// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/critical_step.h"

#include <algorithm>

namespace rankscope::analyzer {

double CriticalStep::exposedTransferNs() const {
    double sum = 0;
    for (size_t i : own) sum += static_cast<double>(tasks[i].exposedTransferNs);
    return sum;
}

double CriticalStep::transferNs() const {
    double sum = 0;
    for (size_t i : own) sum += static_cast<double>(tasks[i].transferNs());
    return sum;
}

std::vector<int> recordedMembers(const Analysis& analysis, const Communicator& communicator) {
    std::vector<int> ranks;
    for (const RankSummary& rank : analysis.ranks)
        if (std::find(communicator.ranks.begin(), communicator.ranks.end(), rank.rank) != communicator.ranks.end()) ranks.push_back(rank.rank);
    return ranks;
}

std::vector<CriticalStep> criticalSteps(const Analysis& analysis, const Communicator& communicator) {
    const std::vector<int> members = recordedMembers(analysis, communicator);
    std::vector<CriticalStep> result;
    for (int step : analysis.steps) {
        CriticalStep critical;
        for (const RankSummary& rank : analysis.ranks) {
            if (!std::binary_search(members.begin(), members.end(), rank.rank)) continue;
            const Attribution* attribution = analysis.attribution(rank, step);
            if (attribution == nullptr) continue;
            if (critical.rank != nullptr && critical.attribution->exposedWaitNs <= attribution->exposedWaitNs) continue;
            critical.rank = &rank;
            critical.attribution = attribution;
        }
        if (critical.rank == nullptr) continue;
        for (CommTask& task : analysis.tasks(*critical.rank, step)) {
            if (task.pointToPoint()) continue;
            if (task.communicatorId == communicator.id) critical.own.push_back(critical.tasks.size());
            critical.tasks.push_back(task);
        }
        if (!critical.own.empty()) result.push_back(std::move(critical));
    }
    return result;
}

}  // namespace rankscope::analyzer
