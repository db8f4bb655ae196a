// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/first_death.h"

#include <algorithm>

#include <fmt/format.h>

namespace rankscope::collector {

namespace {

struct Death {
    int64_t lastNs;
    int64_t boundNs;  ///< how well its host's clock is known
    const RankSummary* summary;
};

}  // namespace

std::optional<store::Loss> nameFirstDeath(const JoinedRanks& ranks) {
    std::vector<Death> deaths;
    for (size_t i = 0; i < ranks.summaries.size(); ++i) {
        const RankSummary& summary = ranks.summaries[i];
        if (summary.state != store::RankState::died || !summary.process.endNs) continue;
        const auto host = static_cast<size_t>(ranks.clocks.hostOfSummary[i]);
        deaths.push_back({ranks.clocks.jobNs(i, *summary.process.endNs), ranks.clocks.hosts[host].fit.boundNs, &summary});
    }
    if (deaths.size() < 2) return std::nullopt;
    std::ranges::sort(deaths, [](const Death& a, const Death& b) { return std::pair(a.lastNs, a.summary->rank) < std::pair(b.lastNs, b.summary->rank); });
    const Death& first = deaths[0];
    const Death& next = deaths[1];
    const int64_t apartNs = next.lastNs - first.lastNs;
    store::Loss loss{0, "first_death", store::Severity::error, {}, "collector", static_cast<int64_t>(deaths.size()), {}, {}, {}};
    if (apartNs <= first.boundNs + next.boundNs) {
        loss.message = fmt::format("{} ranks died; which of ranks {} and {} stopped first cannot be told: their last signs of life are {:.3f} ms apart, the clocks good to {:.3f} ms",
                                   deaths.size(), first.summary->rank, next.summary->rank, static_cast<double>(apartNs) / 1e6,
                                   static_cast<double>(first.boundNs + next.boundNs) / 1e6);
        return loss;
    }
    loss.rank = first.summary->rank;
    loss.message = fmt::format("rank {} (on {}) stopped first, {:.3f} ms before the next of the {} ranks that died: look there for the cause", first.summary->rank,
                               first.summary->hostName, static_cast<double>(apartNs) / 1e6, deaths.size());
    return loss;
}

}  // namespace rankscope::collector
