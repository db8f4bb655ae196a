// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/critical_step.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/text/units.h"

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
    for (const int rank : communicator.ranks)
        if (analysis.findRank(rank) != nullptr) ranks.push_back(rank);
    std::ranges::sort(ranks);
    return ranks;
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
        for (const facts::CommTask& task : analysis.tasks(*critical.rank, step)) {
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

std::vector<double> transfersOf(const CriticalStep& step) {
    std::vector<double> transfers;
    for (const facts::CommTask& task : step.tasks) transfers.push_back(static_cast<double>(task.transferNs()));
    return transfers;
}

double savedAtMost(const CriticalStep& step, const std::vector<double>& newTransferNs) {
    double saved = 0;
    for (size_t begin = 0; begin < step.tasks.size();) {
        size_t end = begin + 1;
        // A launch gap between two messages is no pause of the network.
        while (end < step.tasks.size() && step.tasks[end].idleNetworkBeforeNs <= facts::RankSummary::kShortestGapNs &&
               step.tasks[end].startNs - step.tasks[end - 1].endNs <= facts::RankSummary::kShortestGapNs)
            ++end;
        double gained = 0, exposed = 0;
        for (size_t i = begin; i < end; ++i) {
            gained += static_cast<double>(step.tasks[i].transferNs()) - newTransferNs[i];
            exposed += static_cast<double>(step.tasks[i].exposedTransferNs);
        }
        const facts::CommTask& last = step.tasks[end - 1];
        const auto hidden = static_cast<double>(last.transferNs() - last.exposedTransferNs);
        const double rest = std::max(0.0, newTransferNs[end - 1] - hidden);
        saved += std::max(0.0, std::min(gained, exposed - rest));
        begin = end;
    }
    return saved;
}

const CriticalStep& shownStep(const job::Analysis& analysis, const std::vector<CriticalStep>& steps,
                              const job::Finding& finding) {
    const CriticalStep* shown = &steps.front();
    int64_t longest = 0;
    for (const CriticalStep& step : steps) {
        const facts::StepWindow* window = analysis.window(step.rank->rank, step.tasks[step.own.front()].step);
        if (window == nullptr) continue;
        const int64_t both = std::min(window->startNs + window->durNs, finding.windowEndNs) -
                             std::max(window->startNs, finding.windowStartNs);
        if (both <= longest) continue;
        longest = both;
        shown = &step;
    }
    return *shown;
}

void addExposedRows(const CriticalStep& step, std::vector<size_t> candidates, size_t most, const std::string& what,
                    job::Finding& finding) {
    std::erase_if(candidates,
                  [&](size_t i) { return step.tasks[i].collectiveId == 0 || step.tasks[i].exposedTransferNs <= 0; });
    std::stable_sort(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
        return step.tasks[a].exposedTransferNs > step.tasks[b].exposedTransferNs;
    });
    candidates.resize(std::min(most, candidates.size()));
    std::sort(candidates.begin(), candidates.end());
    for (size_t i : candidates) {
        const facts::CommTask& task = step.tasks[i];
        finding.evidence.rows.push_back(
            {"collective", task.collectiveId, step.rank->rank,
             what + ", exposed for " + text::durationText(static_cast<double>(task.exposedTransferNs))});
    }
}

void addRowsOfWindow(const job::LinkProbe& probe, job::Finding& finding) {
    const auto begin = probe.rows.begin(), end = probe.rows.end();
    const auto first = std::find_if(begin, end, [&](const job::EvidenceRow& row) {
        return row.startNs && *row.startNs >= finding.windowStartNs && *row.startNs < finding.windowEndNs;
    });
    auto row = first == end ? begin : first;
    for (size_t i = 0; i < job::LinkProbe::kRowsOfStep && row != end; ++i, ++row) {
        if (first != end && *row->startNs >= finding.windowEndNs) break;
        finding.evidence.rows.push_back(*row);
    }
}

}  // namespace rankscope::diagnose
