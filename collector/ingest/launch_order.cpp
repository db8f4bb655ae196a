// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/launch_order.h"

#include <algorithm>

namespace rankscope::collector {
LaunchTimes::LaunchTimes(const std::vector<store::ApiCall>& calls) {
    m_times.reserve(calls.size());
    for (const store::ApiCall& call : calls) {
        if (call.correlationId) m_times.emplace_back(*call.correlationId, call.startNs);
    }
    if (!std::is_sorted(m_times.begin(), m_times.end())) std::sort(m_times.begin(), m_times.end());
}

int64_t LaunchTimes::of(const std::optional<uint32_t>& correlationId, int64_t fallbackNs) const {
    if (!correlationId) return fallbackNs;
    const auto place =
        std::lower_bound(m_times.begin(), m_times.end(), std::pair<uint32_t, int64_t>(*correlationId, INT64_MIN));
    return place != m_times.end() && place->first == *correlationId ? std::min(place->second, fallbackNs) : fallbackNs;
}

LaunchOrder::LaunchOrder(const RankRecording& recording) {
    const LaunchTimes launches(recording.apiCalls);
    m_endByLaunch.reserve(recording.kernels.size() + recording.memcpys.size() + recording.memsets.size());
    const auto add = [&](const auto& rows) {
        for (const auto& row : rows)
            m_endByLaunch.emplace_back(launches.of(row.correlationId, row.startNs), row.startNs + row.durNs);
    };
    add(recording.kernels);
    add(recording.memcpys);
    add(recording.memsets);
    std::sort(m_endByLaunch.begin(), m_endByLaunch.end());
    for (size_t i = 1; i < m_endByLaunch.size(); ++i)
        m_endByLaunch[i].second = std::max(m_endByLaunch[i].second, m_endByLaunch[i - 1].second);
}

int64_t LaunchOrder::drainedNs(int64_t hostNs) const {
    const auto after =
        std::lower_bound(m_endByLaunch.begin(), m_endByLaunch.end(), std::pair<int64_t, int64_t>(hostNs, INT64_MIN));
    return after == m_endByLaunch.begin() ? hostNs : std::max(hostNs, std::prev(after)->second);
}

}  // namespace rankscope::collector
