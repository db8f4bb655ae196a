// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/host_stalls.h"

#include <algorithm>

namespace rankscope::facts {
namespace {

IntervalSet both(const IntervalSet& a, const IntervalSet& b) {
    std::vector<Interval> all(a);
    all.insert(all.end(), b.begin(), b.end());
    return unite(std::move(all));
}

bool isHosts(IdleCause cause) {
    return cause != IdleCause::other && cause != IdleCause::dependency;
}

}  // namespace

std::vector<HostStall> hostStalls(const DeviceActivity& activity, const IdleCauses& causes, const RankFacts& facts) {
    std::vector<HostStall> stalls;
    if (!causes.hostIsKnown()) return stalls;
    const IntervalSet working = both(activity.compute, activity.memory);
    const CoveredLength waiting(activity.wait);
    const CoveredLength communicating(both(activity.wait, activity.transfer));
    for (const StepWindow& step : facts.steps) {
        const int64_t stepEndNs = step.startNs + step.durNs;
        for (const Interval& gap : subtract({{step.startNs, stepEndNs}}, clip(working, step.startNs, stepEndNs))) {
            const IdleVerdict verdict = causes.of(gap, step.startNs);
            if (!isHosts(verdict.cause)) continue;
            // A call that waits for communication has reason to: the host is late only from its return on. Not so an
            // allocator call, which waits for every stream: without it compute would have gone on beside the
            // communication.
            const bool hadReason = verdict.cause != IdleCause::allocator;
            const int64_t freeNs = hadReason ? std::clamp(verdict.blockedUntilNs, gap.startNs, gap.endNs) : gap.startNs;
            const int64_t waitedNs = communicating.within(gap.startNs, freeNs) + waiting.within(freeNs, gap.endNs);
            const int64_t stallNs = gap.endNs - gap.startNs - waitedNs;
            if (stallNs <= 0) continue;
            stalls.push_back({step.warmUp ? -1 : step.step, gap.startNs, gap.endNs, stallNs, verdict.cause,
                              verdict.callId, verdict.callNameId, verdict.rangeNameId, verdict.pageableCopy,
                              verdict.submissionId, verdict.doing.nameId, verdict.doing.ns, 0});
        }
    }
    return stalls;
}

}  // namespace rankscope::facts
