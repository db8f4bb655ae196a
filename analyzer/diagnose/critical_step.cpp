// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/critical_step.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace rankscope::diagnose {

double CriticalStep::exposedTransferNs() const {
    double sum = 0;
    for (size_t i : own) sum += static_cast<double>(tasks[i].exposedTransferNs);
    return sum;
}

double CriticalStep::besideHostStallsNs(const facts::CommTask& task) const {
    const int64_t fromNs = task.startNs + task.waitNs;
    int64_t sum = 0;
    auto stall = std::lower_bound(rank->hostStalls.begin(), rank->hostStalls.end(), fromNs,
                                  [](const facts::HostStall& s, int64_t ns) { return s.endNs <= ns; });
    for (; stall != rank->hostStalls.end() && stall->startNs < task.endNs; ++stall)
        sum += std::min(stall->endNs, task.endNs) - std::max(stall->startNs, fromNs);
    return static_cast<double>(std::min(sum, task.exposedTransferNs));
}

double CriticalStep::transferNs() const {
    double sum = 0;
    for (size_t i : own) sum += static_cast<double>(tasks[i].transferNs());
    return sum;
}

facts::CommRole roleOf(const job::Analysis& analysis, const facts::CommTask& task) {
    const facts::CommRole role = analysis.layout.role(task);
    return role != facts::CommRole::unknown ? role : analysis.layout.role(task.communicatorId);
}

std::vector<int> recordedMembers(const job::Analysis& analysis, const facts::Communicator& communicator) {
    std::vector<int> ranks;
    for (const facts::RankSummary& rank : analysis.ranks)
        if (std::find(communicator.ranks.begin(), communicator.ranks.end(), rank.rank) != communicator.ranks.end())
            ranks.push_back(rank.rank);
    return ranks;
}

std::vector<CriticalStep> criticalSteps(const job::Analysis& analysis, const facts::Communicator& communicator) {
    return criticalSteps(analysis, std::set<int64_t>{communicator.id});
}

std::vector<CriticalStep> criticalSteps(const job::Analysis& analysis, const std::set<int64_t>& communicators) {
    std::set<int> members;
    for (int64_t id : communicators)
        for (int rank : recordedMembers(analysis, analysis.facts.communicators.at(id))) members.insert(rank);
    std::vector<CriticalStep> result;
    for (int step : analysis.steps) {
        CriticalStep critical;
        for (const facts::RankSummary& rank : analysis.ranks) {
            if (members.count(rank.rank) == 0) continue;
            const facts::Attribution* attribution = analysis.attribution(rank, step);
            if (attribution == nullptr) continue;
            if (critical.rank != nullptr && critical.attribution->exposedWaitNs <= attribution->exposedWaitNs) continue;
            critical.rank = &rank;
            critical.attribution = attribution;
        }
        if (critical.rank == nullptr) continue;
        for (facts::CommTask& task : analysis.tasks(*critical.rank, step)) {
            if (task.pointToPoint()) continue;
            if (communicators.count(task.communicatorId) != 0) critical.own.push_back(critical.tasks.size());
            critical.tasks.push_back(task);
        }
        if (!critical.own.empty()) result.push_back(std::move(critical));
    }
    return result;
}

std::vector<CommunicatorClass> communicatorClasses(const job::Analysis& analysis) {
    std::map<std::tuple<facts::CommRole, int, int, int>, CommunicatorClass> classes;
    for (const auto& [id, role] : analysis.layout.roles) {
        const auto at = analysis.facts.communicators.find(id);
        if (at == analysis.facts.communicators.end() || at->second.size < 2) continue;
        const facts::Communicator& communicator = at->second;
        CommunicatorClass& found = classes[{role, communicator.size, communicator.nodes, communicator.smallestNode}];
        found.role = role;
        if (found.first == nullptr) found.first = &communicator;
        found.ids.insert(id);
        const std::vector<int> members = recordedMembers(analysis, communicator);
        found.ranks.insert(found.ranks.end(), members.begin(), members.end());
    }
    std::vector<CommunicatorClass> result;
    for (auto& [key, found] : classes) {
        std::sort(found.ranks.begin(), found.ranks.end());
        found.ranks.erase(std::unique(found.ranks.begin(), found.ranks.end()), found.ranks.end());
        if (!found.ranks.empty()) result.push_back(std::move(found));
    }
    return result;
}

}  // namespace rankscope::diagnose
