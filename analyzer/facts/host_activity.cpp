// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/host_activity.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace rankscope::facts {

HostActivity::HostActivity(const RankEvents& events) {
    for (const HostOperation& operation : events.operations)
        m_threads[operation.threadId].push_back({operation.startNs, operation.endNs, 0, operation.usualNs, operation.id,
                                                 operation.nameId, -1, Kind::operation});
    for (const HostRange& range : events.ranges)
        m_threads[range.threadId].push_back({range.startNs, range.endNs, 0, -1, 0, range.nameId, -1, Kind::range});
    for (const HostCall& call : events.hostCalls)
        if (call.endNs - call.startNs >= kLongCallNs)
            m_threads[call.threadId].push_back({call.startNs, call.endNs, 0, -1, call.id, call.nameId, -1, Kind::call});
    for (auto& [thread, entries] : m_threads) {
        std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            return std::tuple(a.startNs, -a.endNs, a.kind == Kind::call, a.id) <
                   std::tuple(b.startNs, -b.endNs, b.kind == Kind::call, b.id);
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
    const auto first = std::upper_bound(entries.begin(), entries.end(), fromNs,
                                        [](int64_t t, const Entry& entry) { return t < entry.startNs; });
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

}  // namespace rankscope::facts
