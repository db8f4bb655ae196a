// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/host_use.h"

#include <map>
#include <unordered_map>

namespace rankscope::facts {
namespace {

const StepWindow* analysedStepAt(const RankFacts& facts, int64_t timeNs) {
    for (const StepWindow& step : facts.steps)
        if (!step.warmUp && step.startNs <= timeNs && timeNs < step.startNs + step.durNs) return &step;
    return nullptr;
}

IntervalSet busyWithoutCopies(const DeviceActivity& activity) {
    std::vector<Interval> all(activity.compute);
    all.insert(all.end(), activity.transfer.begin(), activity.transfer.end());
    all.insert(all.end(), activity.wait.begin(), activity.wait.end());
    return unite(std::move(all));
}

}  // namespace

std::vector<HostUse> hostUse(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts) {
    std::map<int, HostUse> bySteps;
    const auto useOf = [&](int64_t timeNs) -> HostUse* {
        const StepWindow* step = analysedStepAt(facts, timeNs);
        if (step == nullptr) return nullptr;
        HostUse& use = bySteps[step->step];
        use.step = step->step;
        return &use;
    };
    for (const HostCall& call : events.hostCalls) {
        if (!call.allocates()) continue;
        HostUse* use = useOf(call.startNs);
        if (use == nullptr) continue;
        ++use->allocatorCalls;
        use->allocatorNs += call.endNs - call.startNs;
        if (use->allocatorCallId == 0) use->allocatorCallId = call.id;
    }
    std::unordered_map<int64_t, const HostCall*> callOf;
    for (const HostCall& call : events.hostCalls)
        if (call.kind == store::ApiKind::copy && call.correlation >= 0) callOf.emplace(call.correlation, &call);
    const CoveredLength busy(busyWithoutCopies(activity));
    const CoveredLength computing(activity.compute);
    for (const MemoryTask& task : events.memory) {
        if (!task.toDevice && !task.toHost) continue;
        if (task.bytes <= MemoryTask::kStagedBytes) continue;
        HostUse* use = useOf(task.startNs);
        if (use == nullptr || (!task.pageable && !task.pinned)) continue;
        CopyUse& copies = task.pageable ? use->pageable : use->pinned;
        const auto call = callOf.find(task.correlation);
        if (task.pageable) use->pageableCopies.push_back({task.copyId, task.bytes});
        ++copies.count;
        copies.bytes += task.bytes;
        copies.deviceNs += task.endNs - task.startNs;
        copies.exposedNs += task.endNs - task.startNs - busy.within(task.startNs, task.endNs);
        copies.uncoveredNs += task.endNs - task.startNs - computing.within(task.startNs, task.endNs);
        copies.blocking += call != callOf.end() && call->second->waits;
        if (task.endNs - task.startNs > copies.longestNs) {
            copies.longestNs = task.endNs - task.startNs;
            copies.longestId = task.copyId;
        }
    }
    std::vector<HostUse> result;
    for (const auto& [step, use] : bySteps) result.push_back(use);
    return result;
}

}  // namespace rankscope::facts
