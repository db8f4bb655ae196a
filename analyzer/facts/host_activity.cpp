// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/host_activity.h"

#include <algorithm>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/facts/statistics.h"

namespace rankscope::facts {
namespace {

/// Holds the median duration of the calls of one name, ns, and the first of them.
struct Usual {
    int64_t ns = -1;
    int64_t firstId = 0;
};

std::unordered_map<int32_t, Usual> usualCalls(const std::vector<HostCall>& calls) {
    std::unordered_set<int32_t> wanted;  // names with a call long enough to be a pause
    for (const HostCall& call : calls)
        if (call.endNs - call.startNs >= PauseThresholds::kShortestNs) wanted.insert(call.nameId);
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

bool mayWait(const HostCall& call) {
    return call.waits || call.allocates() || call.kind == store::ApiKind::synchronize ||
           call.kind == store::ApiKind::copy;
}

/// Returns the number of the analysed step that a time lies in; -1 in warm-up and outside.
int analysedStepAt(const RankFacts& facts, int64_t ns) {
    const StepWindow* step = stepAt(facts.steps, ns);
    return step != nullptr && !step->warmUp ? step->step : -1;
}

/// Returns when kernels ran: everything but copies and sets.
IntervalSet kernelTimes(const DeviceActivity& activity) {
    return unite(activity.compute, unite(activity.transfer, activity.wait));
}

}  // namespace

HostActivity::HostActivity(const RankEvents& events) {
    for (const HostRange& operation : events.operations)
        m_threads[operation.threadId].push_back({operation.startNs, operation.endNs, 0, operation.usualNs, operation.id,
                                                 operation.nameId, -1, Kind::operation});
    for (const HostRange& range : events.ranges)
        m_threads[range.threadId].push_back({range.startNs, range.endNs, 0, -1, 0, range.nameId, -1, Kind::range});
    for (const HostCall& call : events.hostCalls)
        if (call.endNs - call.startNs >= kLongCallNs)
            m_threads[call.threadId].push_back({call.startNs, call.endNs, 0, -1, call.id, call.nameId, -1, Kind::call});
    for (auto& [thread, entries] : m_threads) {
        std::ranges::sort(entries, {}, [](const Entry& entry) {
            return std::tuple(entry.startNs, -entry.endNs, entry.kind == Kind::call, entry.id);
        });
        int32_t open = -1;
        for (size_t i = 0; i < entries.size(); ++i) {
            Entry& entry = entries[i];
            while (open >= 0 && entries[static_cast<size_t>(open)].endNs <= entry.startNs)
                open = entries[static_cast<size_t>(open)].around;
            entry.around = open;
            entry.ownNs = entry.endNs - entry.startNs;
            if (open >= 0) {
                Entry& outer = entries[static_cast<size_t>(open)];
                outer.ownNs -= std::min(entry.endNs, outer.endNs) - entry.startNs;
            }
            open = static_cast<int32_t>(i);
        }
    }
}

HostDoing HostActivity::mostlyOf(const std::vector<Entry>& entries, int64_t fromNs, int64_t toNs) {
    std::unordered_map<int32_t, int64_t> byName;
    const auto inside = [&](const Entry& entry) {
        return std::max<int64_t>(0, std::min(entry.endNs, toNs) - std::max(entry.startNs, fromNs));
    };
    const auto count = [&](const Entry& entry) {
        const int64_t ns = inside(entry);
        byName[entry.nameId] += ns;
        if (entry.around >= 0) {
            const Entry& outer = entries[static_cast<size_t>(entry.around)];
            byName[outer.nameId] -= std::min(ns, inside(outer));
        }
    };
    const auto first = std::ranges::upper_bound(entries, fromNs, {}, &Entry::startNs);
    if (first != entries.begin())
        for (auto at = static_cast<int32_t>(first - entries.begin()) - 1; at >= 0;
             at = entries[static_cast<size_t>(at)].around)
            if (entries[static_cast<size_t>(at)].endNs > fromNs) count(entries[static_cast<size_t>(at)]);
    for (auto entry = first; entry != entries.end() && entry->startNs < toNs; ++entry) count(*entry);
    HostDoing most;
    for (const auto& [name, ns] : byName)
        if (ns > most.ns || (ns == most.ns && ns > 0 && name < most.nameId)) most = {name, ns};
    return most;
}

HostDoing HostActivity::mostly(int32_t threadId, int64_t fromNs, int64_t toNs) const {
    HostDoing doing;
    if (const auto own = m_threads.find(threadId); own != m_threads.end()) doing = mostlyOf(own->second, fromNs, toNs);
    if (doing.ns * 2 > toNs - fromNs) return doing;
    for (const auto& [thread, entries] : m_threads) {
        if (thread == threadId) continue;
        const HostDoing other = mostlyOf(entries, fromNs, toNs);
        if (other.ns > doing.ns) doing = other;
    }
    return doing;
}

std::vector<HostPause> hostPauses(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts) {
    std::vector<HostPause> pauses;
    const std::unordered_map<int32_t, Usual> usual = usualCalls(events.hostCalls);
    if (usual.empty() && events.operations.empty()) return pauses;
    const CoveredLength busy(unite(activity.memory, kernelTimes(activity)));
    const HostActivity host(events);
    std::unordered_map<int64_t, const HostCall*> callOf;
    for (const HostCall& call : events.hostCalls)
        if (call.endNs - call.startNs >= PauseThresholds::kShortestNs) callOf.emplace(call.id, &call);
    const auto add = [&](const HostActivity::Entry& entry, int64_t usualNs, bool isCall) {
        if (usualNs < 0 || usualNs > PauseThresholds::kLongestUsualNs) return;
        if (static_cast<double>(entry.ownNs) < PauseThresholds::kFactor * static_cast<double>(usualNs)) return;
        pauses.push_back({analysedStepAt(facts, entry.startNs), entry.startNs, entry.endNs, entry.ownNs, usualNs,
                          entry.nameId, isCall, entry.id});
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
    std::ranges::sort(pauses, {}, [](const HostPause& pause) { return std::pair(pause.startNs, pause.id); });
    return pauses;
}

void measurePauses(const std::vector<HostPause>& pauses, std::vector<HostStall>& stalls) {
    const CoveredLength paused(timesOf(pauses));
    for (HostStall& stall : stalls) stall.pausedNs = std::min(stall.stallNs, paused.within(stall.startNs, stall.endNs));
}

std::vector<HostUse> hostUse(const RankEvents& events, const DeviceActivity& activity, const RankFacts& facts) {
    std::map<int, HostUse> bySteps;
    const auto useOf = [&](int64_t timeNs) -> HostUse* {
        const int step = analysedStepAt(facts, timeNs);
        return step < 0 ? nullptr : &bySteps.try_emplace(step, HostUse{.step = step}).first->second;
    };
    for (const HostCall& call : events.hostCalls) {
        if (!call.allocates()) continue;
        HostUse* use = useOf(call.startNs);
        if (use == nullptr) continue;
        ++use->allocatorCalls;
        use->allocatorNs += call.endNs - call.startNs;
    }
    std::unordered_map<int64_t, const HostCall*> callOf;
    for (const HostCall& call : events.hostCalls)
        if (call.kind == store::ApiKind::copy && call.correlation >= 0) callOf.emplace(call.correlation, &call);
    const CoveredLength busy(kernelTimes(activity));
    const CoveredLength computing(activity.compute);
    for (const MemoryTask& task : events.memory) {
        if (!task.toDevice && !task.toHost) continue;
        if (task.bytes <= MemoryTask::kStagedBytes) continue;
        HostUse* use = useOf(task.startNs);
        if (use == nullptr || (!task.pageable && !task.pinned)) continue;
        CopyUse& copies = task.pageable ? use->pageable : use->pinned;
        const auto call = callOf.find(task.correlation);
        const int64_t ns = task.endNs - task.startNs;
        if (task.pageable) use->pageableCopies.push_back({task.copyId, task.bytes});
        ++copies.count;
        copies.bytes += task.bytes;
        copies.deviceNs += ns;
        copies.exposedNs += ns - busy.within(task.startNs, task.endNs);
        copies.uncoveredNs += ns - computing.within(task.startNs, task.endNs);
        copies.blocking += call != callOf.end() && call->second->waits;
        if (ns <= copies.longestNs) continue;
        copies.longestNs = ns;
        copies.longestId = task.copyId;
    }
    const auto uses = bySteps | std::views::values;
    return {uses.begin(), uses.end()};
}

}  // namespace rankscope::facts
