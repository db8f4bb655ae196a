// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/stall_watch.h"

#include <algorithm>

namespace rankscope::cli {

void StallWatch::stillThere(int64_t nowNs) {
    // A look may come a little late on a busy machine; several periods late nobody was there to look.
    constexpr int64_t kLatePeriods = 4;
    const int64_t gapNs = m_lookedNs < 0 ? 0 : nowNs - m_lookedNs;
    m_lookedNs = nowNs;
    if (gapNs > kLatePeriods * m_periodNs)
        for (auto& [key, seen] : m_seen) seen.sinceNs += gapNs - m_periodNs;
}

std::vector<StalledProcess> StallWatch::look(const std::vector<WatchedProcess>& processes, int64_t nowNs) {
    stillThere(nowNs);
    std::map<std::pair<pid_t, uint64_t>, Seen> present;
    bool anyGetsOn = false;
    for (const WatchedProcess& process : processes) {
        const std::pair key(process.pid, process.startTicks);
        const auto before = m_seen.find(key);
        Seen& seen = present[key];
        seen = before != m_seen.end() && before->second.progress == process.progress
                   ? before->second
                   : Seen{process.progress, nowNs, -1};
        anyGetsOn = anyGetsOn || (process.progress > 0 && nowNs - seen.sinceNs < m_timeoutNs);
    }
    m_seen = std::move(present);

    // A process that has no rank and recorded nothing, beside such as have one, is their launcher.
    const bool anyHasRank = std::ranges::any_of(processes, [](const WatchedProcess& one) { return one.rank >= 0; });
    std::vector<StalledProcess> stalled;
    for (const WatchedProcess& process : processes) {
        Seen& seen = m_seen.at({process.pid, process.startTicks});
        const int64_t stalledNs = nowNs - seen.sinceNs;
        const bool isLauncher = process.rank < 0 && process.progress == 0 && anyHasRank;
        if (stalledNs < m_timeoutNs || isLauncher || (process.progress == 0 && (anyGetsOn || m_mayWorkUnseen)))
            continue;
        if (seen.toldNs >= 0 && nowNs - seen.toldNs < std::max(kAgainNs, m_timeoutNs)) continue;
        seen.toldNs = nowNs;
        stalled.push_back({process, stalledNs});
    }
    return stalled;
}

}  // namespace rankscope::cli
