// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/claims.h"

#include <algorithm>

#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

double standstillNs(const job::Analysis& analysis, int rank, int step) {
    const facts::RankSummary* summary = analysis.findRank(rank);
    const facts::Attribution* attribution = summary != nullptr ? analysis.attribution(*summary, step) : nullptr;
    return attribution != nullptr
               ? static_cast<double>(attribution->exposedWaitNs + attribution->lateTransferNs + attribution->idleNs)
               : 0;
}

void Claims::takeWaiting(const job::Analysis& analysis, const std::string& id, const std::vector<int>& culprits,
                         const std::vector<double>& costPerStepNs, const std::vector<int>& victims) {
    m_culprits[id].insert(culprits.begin(), culprits.end());
    for (const facts::RankSummary& rank : analysis.ranks) {
        if (std::find(culprits.begin(), culprits.end(), rank.rank) != culprits.end()) continue;
        if (!victims.empty() && std::find(victims.begin(), victims.end(), rank.rank) == victims.end()) continue;
        for (size_t i = 0; i < analysis.steps.size() && i < costPerStepNs.size(); ++i) {
            const int step = analysis.steps[i];
            const double left = standstillNs(analysis, rank.rank, step) - explainedNs(rank.rank, step);
            take(id, rank.rank, step, std::min(costPerStepNs[i], left));
        }
    }
}

void Claims::take(const std::string& id, int rank, int step, double ns) {
    if (ns > 0) m_waiting[{rank, step}][id] += ns;
}

double Claims::explainedNs(int rank, int step) const {
    double sum = 0;
    const auto at = m_waiting.find({rank, step});
    if (at != m_waiting.end())
        for (const auto& [id, ns] : at->second) sum += ns;
    return sum;
}

double Claims::explainedNs(const job::Analysis& analysis, int rank) const {
    std::vector<double> perStep;
    for (int step : analysis.steps) perStep.push_back(explainedNs(rank, step));
    return facts::median(std::move(perStep));
}

std::map<std::string, double> Claims::explanations(int rank, int step) const {
    const auto at = m_waiting.find({rank, step});
    return at == m_waiting.end() ? std::map<std::string, double>() : at->second;
}

double Claims::explainedBy(const std::string& id, int rank, int step) const {
    const auto at = m_waiting.find({rank, step});
    if (at == m_waiting.end()) return 0;
    const auto part = at->second.find(id);
    return part == at->second.end() ? 0 : part->second;
}

const std::set<int>& Claims::culprits(const std::string& id) const {
    static const std::set<int> kNone;
    const auto at = m_culprits.find(id);
    return at == m_culprits.end() ? kNone : at->second;
}

void Claims::takeTransfer(const std::string& id, int64_t communicator, double nsPerStep) {
    if (nsPerStep > 0) m_transfer[communicator][id] += nsPerStep;
}

double Claims::explainedTransferNs(int64_t communicator, const std::string& asking) const {
    double sum = 0;
    const auto at = m_transfer.find(communicator);
    if (at != m_transfer.end())
        for (const auto& [id, ns] : at->second)
            if (id != asking) sum += ns;
    return sum;
}

std::map<std::string, double> Claims::transferExplanations(int64_t communicator) const {
    const auto at = m_transfer.find(communicator);
    return at == m_transfer.end() ? std::map<std::string, double>() : at->second;
}

}  // namespace rankscope::diagnose
