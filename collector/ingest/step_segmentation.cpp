// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_segmentation.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <tuple>

#include "collector/ingest/call_period.h"

namespace rankscope::collector {
namespace {

bool isComplete(const RankSummary& summary) {
    return summary.state == store::RankState::complete;
}

/// A first step that takes this much longer than the others is warm-up.
constexpr double kWarmUpFactor = 1.25;
constexpr size_t kMostWarmUpSteps = 2;
/// A step of which a recording lacks no more than this share is taken for whole: ranks do not end at the same instant.
constexpr double kNearlyWhole = 0.02;

/// Start of every step of one rank, then the end of the last, on the job clock.
using Boundaries = std::vector<int64_t>;

struct Candidate {
    int tier = 0;
    int32_t depth = 0;
    double coveredNs = 0;
    std::string pattern;
    auto order() const { return std::make_tuple(tier, depth, -coveredNs, pattern); }
};

/// How likely a range of this name is the step: 0 PyTorch's profiler step, 1 says so, 2 any other.
int tierOf(const std::string& pattern) {
    if (pattern == "ProfilerStep") return 0;
    std::string lower;
    for (const char c : pattern) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto has = [&lower](const char* word) { return lower.find(word) != std::string::npos; };
    if (has("optimizer") || has("scheduler")) return 2;
    return has("step") || has("iter") ? 1 : 2;
}

/// Ranges of one pattern that do not lie in each other.
std::vector<const RangeFact*> outermost(const RankSummary& summary, const std::string& pattern) {
    std::vector<const RangeFact*> chosen;
    for (const RangeFact& range : summary.ranges) {
        if (range.pattern != pattern) continue;
        if (chosen.empty() || range.startNs >= chosen.back()->endNs) chosen.push_back(&range);
    }
    return chosen;
}

bool recordedAnything(const RankSummary& summary) {
    return summary.firstNs <= summary.lastNs;
}

std::optional<std::string> bestPattern(const std::vector<RankSummary>& summaries) {
    std::map<std::string, Candidate> candidates;
    for (const RankSummary& summary : summaries) {
        for (const RangeFact& range : summary.ranges) {
            const auto [place, isNew] = candidates.try_emplace(range.pattern);
            Candidate& candidate = place->second;
            if (isNew) candidate = {tierOf(range.pattern), range.depth, 0, range.pattern};
            candidate.depth = std::min(candidate.depth, range.depth);
            candidate.coveredNs += static_cast<double>(range.endNs - range.startNs);
        }
    }
    std::vector<Candidate> ordered;
    for (const auto& [pattern, candidate] : candidates) ordered.push_back(candidate);
    std::sort(ordered.begin(), ordered.end(),
              [](const Candidate& a, const Candidate& b) { return a.order() < b.order(); });
    for (const Candidate& candidate : ordered) {
        // A name that does not speak of steps must repeat often enough, and equally often everywhere, to be one.
        const size_t least = candidate.tier == 0 ? 1 : candidate.tier == 1 ? 2 : 3;
        bool everywhere = true;
        bool anywhere = false;
        size_t with = 0, without = 0;
        std::optional<size_t> count;
        for (const RankSummary& summary : summaries) {
            if (!recordedAnything(summary)) continue;
            const size_t found = outermost(summary, candidate.pattern).size();
            // A recording that was cut may have lost its marks, where the name leaves no doubt.
            const bool cut = !isComplete(summary) && (found >= 1 || candidate.tier < 2);
            everywhere = everywhere && (found >= least || cut);
            anywhere = anywhere || found > 0;
            ++(found > 0 ? with : without);
            if (candidate.tier == 2 && isComplete(summary)) everywhere = everywhere && (!count || *count == found);
            if (isComplete(summary)) count = found;
        }
        // When all ranks died, none is left to tell the full number: a name that speaks of steps is then enough.
        if (everywhere && with > without && (count || (candidate.tier < 2 && anywhere))) return candidate.pattern;
    }
    return std::nullopt;
}

Boundaries boundariesOfPattern(const RankSummary& summary, size_t index, const std::string& pattern,
                               const HostClocks& clocks) {
    Boundaries boundaries;
    const auto push = [&](int64_t hostNs) {
        const int64_t ns = clocks.jobNs(index, hostNs);
        boundaries.push_back(boundaries.empty() ? ns : std::max(ns, boundaries.back()));
    };
    const std::vector<const RangeFact*> ranges = outermost(summary, pattern);
    for (const RangeFact* range : ranges) push(range->deviceStartNs);
    if (!ranges.empty()) push(ranges.back()->deviceEndNs);
    return boundaries;
}

/// Boundaries for a rank that has none of its own: in the middle of those of its peers, up to `lastNs`, the end of its
/// recording on the job clock.
Boundaries boundariesOfPeers(const std::vector<Boundaries>& all, int64_t lastNs) {
    Boundaries boundaries;
    while (true) {
        std::vector<int64_t> peers;
        for (const Boundaries& peer : all)
            if (peer.size() > boundaries.size()) peers.push_back(peer[boundaries.size()]);
        if (peers.empty()) break;
        const auto middle = peers.begin() + static_cast<std::ptrdiff_t>(peers.size() / 2);
        std::nth_element(peers.begin(), middle, peers.end());
        const double missingNs = static_cast<double>(*middle - lastNs);
        if (missingNs > 0 &&
            (boundaries.empty() || missingNs > kNearlyWhole * static_cast<double>(*middle - boundaries.back())))
            break;
        boundaries.push_back(*middle);
    }
    return boundaries;
}

/// Gives ranks without marks the steps of their peers, and says so.
void lendBoundaries(const std::vector<RankSummary>& summaries, const HostClocks& clocks, std::vector<Boundaries>& all,
                    std::vector<store::Loss>& losses) {
    const std::vector<Boundaries> own = all;
    for (size_t s = 0; s < summaries.size(); ++s) {
        if (!own[s].empty() || !recordedAnything(summaries[s])) continue;
        all[s] = boundariesOfPeers(own, clocks.jobNs(s, summaries[s].lastNs));
        store::Loss loss;
        loss.kind = "step_marks";
        loss.rank = summaries[s].rank;
        loss.source = "nvtx";
        loss.count = static_cast<int64_t>(all[s].empty() ? 0 : all[s].size() - 1);
        loss.message =
            "the rank's own marks of steps are lost: it has those of its peers, as far as its recording goes";
        losses.push_back(std::move(loss));
    }
}

/// Steps by the period of the calls; empty when some rank shows none.
std::vector<Boundaries> boundariesByPeriod(const std::vector<RankSummary>& summaries,
                                           const CommunicatorSet& communicators, const HostClocks& clocks) {
    std::vector<Boundaries> all(summaries.size());
    size_t fewest = SIZE_MAX;
    for (size_t s = 0; s < summaries.size(); ++s) {
        if (!recordedAnything(summaries[s])) continue;
        const std::optional<CallPeriod> period = findCallPeriod(summaries[s], static_cast<int32_t>(s), communicators);
        if (!period) return {};
        const auto& calls = summaries[s].calls;
        int64_t latestNs = INT64_MIN;
        const auto push = [&](int64_t hostNs) {
            latestNs = std::max(latestNs, hostNs);
            all[s].push_back(clocks.jobNs(s, latestNs));
        };
        push(period->first == 0 ? std::min(summaries[s].deviceFirstNs, calls[0].arrivalNs)
                                : calls[period->first - 1].endNs);
        for (size_t k = 1; k <= period->repeats; ++k) push(calls[period->first + k * period->length - 1].endNs);
        fewest = std::min(fewest, period->repeats);
    }
    if (fewest == SIZE_MAX) return {};
    for (Boundaries& boundaries : all) {
        // The same number of steps everywhere: a rank that began to repeat earlier has its surplus at the front.
        if (boundaries.size() > fewest + 1)
            boundaries.erase(boundaries.begin(), boundaries.end() - static_cast<std::ptrdiff_t>(fewest + 1));
    }
    return all;
}

std::vector<Boundaries> oneStep(const std::vector<RankSummary>& summaries, const HostClocks& clocks) {
    std::vector<Boundaries> all(summaries.size());
    for (size_t s = 0; s < summaries.size(); ++s) {
        const RankSummary& summary = summaries[s];
        if (summary.deviceFirstNs <= summary.deviceLastNs)
            all[s] = {clocks.jobNs(s, summary.deviceFirstNs), clocks.jobNs(s, summary.deviceLastNs)};
    }
    return all;
}

/// How many steps at the front are slower than the rest, on average over the ranks.
size_t warmUpSteps(const std::vector<Boundaries>& all) {
    std::vector<double> sums;
    std::vector<int64_t> counts;
    for (const Boundaries& boundaries : all) {
        for (size_t k = 0; k + 1 < boundaries.size(); ++k) {
            if (k >= sums.size()) {
                sums.push_back(0);
                counts.push_back(0);
            }
            sums[k] += static_cast<double>(boundaries[k + 1] - boundaries[k]);
            ++counts[k];
        }
    }
    if (sums.size() < 3) return 0;
    for (size_t k = 0; k < sums.size(); ++k) sums[k] /= static_cast<double>(counts[k]);
    std::vector<double> later(sums.begin() + static_cast<std::ptrdiff_t>(std::min(kMostWarmUpSteps, sums.size() - 2)),
                              sums.end());
    const auto middle = later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2);
    std::nth_element(later.begin(), middle, later.end());
    size_t count = 0;
    while (count < kMostWarmUpSteps && count + 2 < sums.size() && sums[count] > kWarmUpFactor * *middle) ++count;
    return count;
}

}  // namespace

Segmentation findSteps(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators,
                       const HostClocks& clocks) {
    Segmentation result;
    std::vector<Boundaries> all;
    if (const std::optional<std::string> pattern = bestPattern(summaries)) {
        result.source = "nvtx:" + *pattern;
        for (size_t s = 0; s < summaries.size(); ++s)
            all.push_back(boundariesOfPattern(summaries[s], s, *pattern, clocks));
        lendBoundaries(summaries, clocks, all, result.losses);
    } else if (all = boundariesByPeriod(summaries, communicators, clocks); !all.empty()) {
        result.source = "period";
    } else {
        result.source = "none";
        all = oneStep(summaries, clocks);
    }
    const size_t warmUp = warmUpSteps(all);
    for (size_t s = 0; s < summaries.size(); ++s) {
        for (size_t k = 0; k + 1 < all[s].size(); ++k) {
            result.steps.push_back(
                {summaries[s].rank, static_cast<int32_t>(k), all[s][k], all[s][k + 1] - all[s][k], k < warmUp});
        }
    }
    return result;
}

}  // namespace rankscope::collector
