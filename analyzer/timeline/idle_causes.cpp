// SPDX-License-Identifier: Apache-2.0
#include "analyzer/timeline/idle_causes.h"

#include <algorithm>
#include <unordered_map>

namespace rankscope::analyzer {
namespace {

/// Time the calls cover inside the gap; calls are sorted by start and do not overlap much (one host thread drives a device as a rule).
int64_t covered(const std::vector<HostCall>& calls, const Interval& gap) {
    int64_t total = 0;
    auto call = std::lower_bound(calls.begin(), calls.end(), gap.startNs, [](const HostCall& c, int64_t t) { return c.endNs <= t; });
    for (; call != calls.end() && call->startNs < gap.endNs; ++call)
        total += std::max<int64_t>(0, std::min(call->endNs, gap.endNs) - std::max(call->startNs, gap.startNs));
    return total;
}

}  // namespace

IdleCauses::IdleCauses(const RankEvents& events) : m_events(events) {
    std::unordered_map<int64_t, int64_t> launches;
    for (const HostCall& call : events.hostCalls) {
        if (call.kind == store::ApiKind::synchronize) m_blocking.push_back(call);
        if (call.kind == store::ApiKind::allocate || call.kind == store::ApiKind::free) m_memory.push_back(call);
        if (call.correlation >= 0) launches.emplace(call.correlation, call.startNs);
    }
    for (const ComputeTask& task : events.compute) {
        const auto launch = launches.find(task.correlation);
        m_starts.push_back({task.startNs, launch == launches.end() ? -1 : launch->second});
    }
}

IdleCause IdleCauses::of(const Interval& gap, int64_t stepStartNs) const {
    if (m_events.hostCalls.empty()) return IdleCause::other;  // no host rows: nothing to tell it from
    const int64_t half = (gap.endNs - gap.startNs) / 2;
    if (covered(m_memory, gap) > half) return IdleCause::allocator;
    const auto next = std::lower_bound(m_starts.begin(), m_starts.end(), gap.endNs, [](const Start& s, int64_t t) { return s.deviceStartNs < t; });
    const bool endsInCompute = next != m_starts.end() && next->deviceStartNs == gap.endNs && next->launchNs >= 0;
    if (endsInCompute && next->launchNs <= gap.startNs) return IdleCause::dependency;  // it was ready to run: it waited for something on the device
    if (covered(m_blocking, gap) > half) return IdleCause::blockingCall;
    if (!endsInCompute) return IdleCause::other;
    const auto call = std::lower_bound(m_events.hostCalls.begin(), m_events.hostCalls.end(), gap.startNs,
                                       [](const HostCall& c, int64_t t) { return c.startNs < t; });
    const bool hostWasElsewhere = call == m_events.hostCalls.end() || call->startNs > gap.startNs + half;
    return gap.startNs <= stepStartNs && hostWasElsewhere ? IdleCause::input : IdleCause::lateLaunch;
}

}  // namespace rankscope::analyzer
