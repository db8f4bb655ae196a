// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/selected_times.h"

#include <algorithm>

namespace rankscope::exports {

SelectedTimes::SelectedTimes(store::TraceReader& trace, const ExportSelection& selection)
    : m_ranks(selection.ranks), m_allTimes(!selection.steps) {
    if (m_allTimes) return;
    for (const store::Step& step : trace.all<store::Step>()) {
        if (step.step < selection.steps->first || step.step > selection.steps->second) continue;
        const auto [at, isNew] = m_times.try_emplace(step.rank, TimeRange{step.startNs, step.startNs + step.durNs});
        at->second = {std::min(at->second.fromNs, step.startNs), std::max(at->second.toNs, step.startNs + step.durNs)};
    }
}

bool SelectedTimes::hasRank(int rank) const {
    return m_ranks.empty() || std::ranges::count(m_ranks, rank) != 0;
}

TimeRange SelectedTimes::of(int rank) const {
    if (m_allTimes) return {};
    const auto at = m_times.find(rank);
    return at == m_times.end() ? TimeRange{0, 0} : at->second;
}

bool SelectedTimes::touches(int64_t fromNs, int64_t toNs) const {
    return m_allTimes || std::ranges::any_of(m_times, [&](const auto& time) {
               return hasRank(time.first) && fromNs < time.second.toNs && time.second.fromNs < toNs;
           });
}

}  // namespace rankscope::exports
