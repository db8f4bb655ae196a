// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/link_saving.h"

#include <algorithm>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {
namespace {

/// Told from messages: of a pair, or the all-to-alls of experts.
bool ofMessages(const job::Analysis& analysis, const job::LinkProbe& probe) {
    return probe.pair || analysis.layout.role(probe.communicatorId, store::Op::send) == facts::CommRole::experts;
}

/// How much slower than it should be the task's traffic is by one of the probes; 1 where none saw it.
double slownessOf(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes, int rank,
                  const facts::CommTask& task) {
    double slowness = 1;
    for (const job::LinkProbe* probe : probes) {
        if (probe->communicatorId != task.communicatorId || ofMessages(analysis, *probe) != task.pointToPoint())
            continue;
        if (task.pointToPoint() && (!probe->touches(rank) || (task.lastRank >= 0 && !probe->touches(task.lastRank))))
            continue;
        slowness = std::max(slowness, probe->excess());
    }
    return slowness;
}

}  // namespace

std::vector<double> savingAtPeak(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes) {
    std::vector<double> perStep;
    for (int step : analysis.steps) {
        double most = 0;
        for (const facts::RankSummary& rank : analysis.ranks) {
            double saved = 0;
            for (const facts::CommTask& task : analysis.tasks(rank, step))
                saved += std::min(
                    static_cast<double>(task.exposedTransferNs),
                    static_cast<double>(task.transferNs()) * (1 - 1 / slownessOf(analysis, probes, rank.rank, task)));
            most = std::max(most, saved);
        }
        perStep.push_back(most);
    }
    return perStep;
}

}  // namespace rankscope::diagnose
