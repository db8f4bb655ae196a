// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/host_pauses.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/facts/host_activity.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::facts {
namespace {

/// Duration of the middle call of each name, ns, and the first of it.
struct Usual {
    int64_t ns = -1;
    int64_t firstId = 0;
};

std::unordered_map<int32_t, Usual> usualCalls(const std::vector<HostCall>& calls) {
    std::unordered_map<int32_t, bool> wanted;  // names with a call long enough to be a pause
    for (const HostCall& call : calls)
        if (call.endNs - call.startNs >= PauseThresholds::kShortestNs) wanted[call.nameId] = true;
    std::unordered_map<int32_t, Usual> usual;
    std::unordered_map<int32_t, std::vector<double>> durations;
    for (const HostCall& call : calls) {
        if (wanted.count(call.nameId) == 0) continue;
        std::vector<double>& list = durations[call.nameId];
        if (list.empty()) usual[call.nameId].firstId = call.id;
        list.push_back(static_cast<double>(call.endNs - call.startNs));
    }
    for (auto& [name, list] : durations)
        if (list.size() >= PauseThresholds::kFewestForMedian)
            usual[name].ns = static_cast<int64_t>(median(std::move(list)));
    return usual;
}

int stepAt(const RankFacts& facts, int64_t timeNs) {
    for (const StepWindow& step : facts.steps)
        if (!step.warmUp && step.startNs <= timeNs && timeNs < step.startNs + step.durNs) return step.step;
    return -1;
}

bool mayWait(const HostCall& call) {
    return call.waits || call.allocates() || call.kind == store::ApiKind::synchronize ||
           call.kind == store::ApiKind::copy;
}

}  // namespace

std::vector<HostPause> hostPauses(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts) {
    std::vector<HostPause> pauses;
    const std::unordered_map<int32_t, Usual> usual = usualCalls(events.hostCalls);
    if (usual.empty() && events.operations.empty()) return pauses;
    std::vector<Interval> all(activity.compute);
    for (const IntervalSet* set : {&activity.memory, &activity.transfer, &activity.wait})
        all.insert(all.end(), set->begin(), set->end());
    const CoveredLength busy(unite(std::move(all)));
    const HostActivity host(events);
    std::unordered_map<int64_t, const HostCall*> callOf;
    for (const HostCall& call : events.hostCalls)
        if (call.endNs - call.startNs >= PauseThresholds::kShortestNs) callOf.emplace(call.id, &call);
    const auto add = [&](const HostActivity::Entry& entry, int64_t usualNs, bool isCall) {
        if (usualNs < 0 || usualNs > PauseThresholds::kLongestUsualNs) return;
        if (static_cast<double>(entry.ownNs) < PauseThresholds::kFactor * static_cast<double>(usualNs)) return;
        pauses.push_back({stepAt(facts, entry.startNs), entry.startNs, entry.endNs, entry.ownNs, usualNs, entry.nameId,
                          isCall, entry.id});
    };
    for (const auto& [thread, entries] : host.threads()) {
        for (const HostActivity::Entry& entry : entries) {
            if (entry.ownNs < PauseThresholds::kShortestNs) continue;
            if (entry.kind == HostActivity::Kind::operation) add(entry, entry.usualNs, false);
            if (entry.kind != HostActivity::Kind::call) continue;
            const HostCall& call = *callOf.at(entry.id);
            const Usual& of = usual.at(call.nameId);
            // The driver's queue holds about a thousand launches: a submission behind them waits for a busy device, one
            // in front of an idle device for nothing.
            const bool queued = busy.within(call.startNs, call.endNs) * 2 > call.endNs - call.startNs;
            if (mayWait(call) || call.id == of.firstId || queued) continue;
            add(entry, of.ns, true);
        }
    }
    std::sort(pauses.begin(), pauses.end(), [](const HostPause& a, const HostPause& b) {
        return a.startNs < b.startNs || (a.startNs == b.startNs && a.id < b.id);
    });
    return pauses;
}

void measurePauses(const std::vector<HostPause>& pauses, std::vector<HostStall>& stalls) {
    std::vector<Interval> intervals;
    for (const HostPause& pause : pauses) intervals.push_back({pause.startNs, pause.endNs});
    const CoveredLength paused(unite(std::move(intervals)));
    for (HostStall& stall : stalls) stall.pausedNs = std::min(stall.stallNs, paused.within(stall.startNs, stall.endNs));
}

}  // namespace rankscope::facts
