// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/link_saving.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/diagnose/faster_network.h"

namespace rankscope::diagnose {
namespace {

/// Told from messages: of a pair, or the all-to-alls of experts.
bool ofMessages(const job::Analysis& analysis, const job::LinkProbe& probe) {
    return probe.pair || analysis.layout.role(probe.communicatorId, store::Op::send) == facts::CommRole::experts;
}

/// Messages of slow pairs and groups: what of their exposed transfer is beyond the healthy time, on the rank that has
/// most of it.
void addPairs(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes,
              std::vector<double>& perStep) {
    std::map<int, double> slowness;  // of the rank's slow pairs and groups, the worst
    for (const job::LinkProbe* probe : probes)
        if (ofMessages(analysis, *probe))
            for (int rank : probe->ranks) slowness[rank] = std::max(slowness[rank], probe->slowness);
    for (size_t s = 0; s < analysis.steps.size(); ++s) {
        double worst = 0;
        for (const auto& [rank, factor] : slowness) {
            const facts::RankSummary* summary = analysis.findRank(rank);
            if (summary == nullptr) continue;
            double saved = 0;
            for (const facts::CommTask& task : analysis.tasks(*summary, analysis.steps[s])) {
                if (!task.pointToPoint()) continue;
                const bool slow = std::any_of(probes.begin(), probes.end(), [&](const job::LinkProbe* p) {
                    return ofMessages(analysis, *p) && p->communicatorId == task.communicatorId && p->touches(rank) &&
                           (task.lastRank < 0 || p->touches(task.lastRank));
                });
                if (slow)
                    saved += std::min(static_cast<double>(task.exposedTransferNs),
                                      static_cast<double>(task.transferNs()) * (1 - 1 / factor));
            }
            worst = std::max(worst, saved);
        }
        perStep[s] += worst;
    }
}

/// Ranks to judge the communicators on: those in all of them, where their costs add up; without any, every member.
std::set<int> commonRanks(const job::Analysis& analysis, const std::set<int64_t>& communicators) {
    std::map<int, size_t> memberships;
    for (int64_t id : communicators)
        for (int rank : recordedMembers(analysis, analysis.facts.communicators.at(id))) ++memberships[rank];
    size_t most = 0;
    for (const auto& [rank, count] : memberships) most = std::max(most, count);
    std::set<int> ranks;
    for (const auto& [rank, count] : memberships)
        if (most < communicators.size() || count == most) ranks.insert(rank);
    return ranks;
}

/// The step on that one of the ranks that waits least.
CriticalStep stepOn(const job::Analysis& analysis, const std::set<int>& ranks, const std::set<int64_t>& communicators,
                    int step) {
    CriticalStep critical;
    for (const facts::RankSummary& rank : analysis.ranks) {
        const facts::Attribution* attribution =
            ranks.count(rank.rank) != 0 ? analysis.attribution(rank, step) : nullptr;
        if (attribution == nullptr ||
            (critical.rank != nullptr && critical.attribution->exposedWaitNs <= attribution->exposedWaitNs))
            continue;
        critical.rank = &rank;
        critical.attribution = attribution;
    }
    if (critical.rank == nullptr) return critical;
    for (const facts::CommTask& task : analysis.tasks(*critical.rank, step)) {
        if (task.pointToPoint()) continue;
        if (communicators.count(task.communicatorId) != 0) critical.own.push_back(critical.tasks.size());
        critical.tasks.push_back(task);
    }
    return critical;
}

}  // namespace

std::vector<double> savingAtPeak(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes) {
    std::vector<double> perStep(analysis.steps.size(), 0);
    std::map<int64_t, double> slowness;
    std::set<int64_t> ids;
    for (const job::LinkProbe* probe : probes) {
        if (probe->pair) continue;
        slowness[probe->communicatorId] = probe->slowness;
        ids.insert(probe->communicatorId);
    }
    if (!ids.empty()) {
        const std::set<int> ranks = commonRanks(analysis, ids);
        for (size_t s = 0; s < analysis.steps.size(); ++s) {
            const CriticalStep step = stepOn(analysis, ranks, ids, analysis.steps[s]);
            std::vector<double> times = transfersOf(step);
            for (size_t i : step.own) times[i] /= std::max(1.0, slowness[step.tasks[i].communicatorId]);
            perStep[s] += savingOf(step, times);
        }
    }
    addPairs(analysis, probes, perStep);
    return perStep;
}

}  // namespace rankscope::diagnose
