// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/link_saving.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/diagnose/calls_together.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/light_recording.h"

namespace rankscope::diagnose {
namespace {

/// Told from messages: of a pair, or the all-to-alls of experts.
bool ofMessages(const job::Analysis& analysis, const job::LinkProbe& probe) {
    return probe.pair || analysis.layout.role(probe.communicatorId, store::Op::send) == facts::CommRole::experts;
}

using ProbesOfCommunicators = std::map<int64_t, std::vector<const job::LinkProbe*>>;

/// How much slower than it should be the task's traffic is by one of the probes; 1 where none saw it.
double slownessOf(const job::Analysis& analysis, const ProbesOfCommunicators& probes, int rank,
                  const facts::CommTask& task) {
    double slowness = 1;
    const auto ofCommunicator = probes.find(task.communicatorId);
    if (ofCommunicator == probes.end()) return slowness;
    for (const job::LinkProbe* probe : ofCommunicator->second) {
        if (ofMessages(analysis, *probe) != task.pointToPoint()) continue;
        if (task.pointToPoint() && (!probe->touches(rank) || (task.lastRank >= 0 && !probe->touches(task.lastRank))))
            continue;
        slowness = std::max(slowness, probe->excess());
    }
    return slowness;
}

/// Collectives that nobody waits for, by calls alone: none follows on their heels, so that a later end holds up no
/// other one, their members do not stand still behind them, and they are not the last of their step.
std::set<int64_t> hiddenCollectives(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes) {
    std::set<int64_t> hidden, communicators;
    for (const job::LinkProbe* probe : probes) communicators.insert(probe->communicatorId);
    for (const int64_t communicator : communicators) {
        const std::vector<CallTogether> calls = callsTogether(analysis, communicator);
        const StandingStill standingStill(calls);
        for (size_t first = 0, next = 1; next < calls.size(); ++next) {
            if (!calls[next].mostReady()) continue;
            if (calls[next].step == calls[next - 1].step &&
                !standingStill.isBetween(calls[first].place, calls[next].place).value_or(true))
                for (size_t i = first; i < next; ++i) hidden.insert(calls[i].id);
            first = next;
        }
    }
    return hidden;
}

}  // namespace

std::vector<double> savingAtPeak(const job::Analysis& analysis, const std::vector<const job::LinkProbe*>& probes) {
    const std::set<int64_t> hidden = isByCalls(analysis) ? hiddenCollectives(analysis, probes) : std::set<int64_t>();
    ProbesOfCommunicators byCommunicator;
    for (const job::LinkProbe* probe : probes) byCommunicator[probe->communicatorId].push_back(probe);
    std::vector<double> perStep;
    for (int step : analysis.steps) {
        double most = 0;
        for (const facts::RankSummary& rank : analysis.ranks) {
            double saved = 0;
            for (const facts::CommTask& task : analysis.tasks(rank, step)) {
                if (hidden.contains(task.collectiveId)) continue;
                saved += std::min(static_cast<double>(task.exposedTransferNs),
                                  static_cast<double>(task.transferNs()) *
                                      (1 - 1 / slownessOf(analysis, byCommunicator, rank.rank, task)));
            }
            most = std::max(most, saved);
        }
        perStep.push_back(most);
    }
    return perStep;
}

}  // namespace rankscope::diagnose
