// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/link_saving.h"

#include <algorithm>
#include <map>

#include "analyzer/detectors/faster_network.h"

namespace rankscope::analyzer {
namespace {

/// Messages of slow pairs: what of their exposed transfer is beyond the healthy time, on the rank that has most of it.
void addPairs(const Analysis& analysis, const std::vector<const LinkProbe*>& probes, std::vector<double>& perStep) {
    std::map<int, double> slowness;  // of the rank's slow pairs, the worst
    for (const LinkProbe* probe : probes)
        if (probe->pair)
            for (int rank : probe->ranks) slowness[rank] = std::max(slowness[rank], probe->slowness);
    for (size_t s = 0; s < analysis.steps.size(); ++s) {
        double worst = 0;
        for (const auto& [rank, factor] : slowness) {
            const RankSummary* summary = analysis.findRank(rank);
            if (summary == nullptr) continue;
            double saved = 0;
            for (const CommTask& task : analysis.tasks(*summary, analysis.steps[s])) {
                if (!task.pointToPoint()) continue;
                const bool slow = std::any_of(probes.begin(), probes.end(), [&](const LinkProbe* p) {
                    return p->pair && p->communicatorId == task.communicatorId && p->touches(rank) && (task.lastRank < 0 || p->touches(task.lastRank));
                });
                if (slow) saved += std::min(static_cast<double>(task.exposedTransferNs), static_cast<double>(task.transferNs()) * (1 - 1 / factor));
            }
            worst = std::max(worst, saved);
        }
        perStep[s] += worst;
    }
}

}  // namespace

std::vector<double> savingAtPeak(const Analysis& analysis, const std::vector<const LinkProbe*>& probes) {
    std::vector<double> perStep(analysis.steps.size(), 0);
    std::map<int64_t, double> slowness;
    std::set<int64_t> ids;
    for (const LinkProbe* probe : probes) {
        if (probe->pair) continue;
        slowness[probe->communicatorId] = probe->slowness;
        ids.insert(probe->communicatorId);
    }
    if (!ids.empty()) {
        const std::vector<CriticalStep> steps = criticalSteps(analysis, ids);
        for (size_t s = 0; s < steps.size() && s < perStep.size(); ++s) {
            std::vector<double> times = transfersOf(steps[s]);
            for (size_t i : steps[s].own) times[i] /= std::max(1.0, slowness[steps[s].tasks[i].communicatorId]);
            perStep[s] += savingOf(steps[s], times);
        }
    }
    addPairs(analysis, probes, perStep);
    return perStep;
}

}  // namespace rankscope::analyzer
