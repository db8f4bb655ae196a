// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_segmentation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "collector/ingest/call_period.h"
#include "collector/ingest/step_names.h"

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

/// Ranges that leave more than this between them are a part of something else: nvFuser's validateIterDomainUse takes
/// microseconds of what it is called in.
constexpr double kLeastCovered = 0.1;

/// A range whose name does not speak of steps and that repeats within less of the device's time is a part of a single
/// thing: long starts of jobs, and checkpoints at their ends, leave more to the steps.
constexpr double kLeastSpan = 0.05;

/// Start of every step of one rank, then the end of the last, on the job clock.
using Boundaries = std::vector<int64_t>;

struct Candidate {
    StepName name = StepName::other;
    int32_t depth = 0;
    double coveredNs = 0;
    std::string pattern;
    auto order() const { return std::make_tuple(name, depth, -coveredNs, pattern); }
};

/// Ranges of one pattern that do not lie in each other.
std::vector<const RangeFact*> outermost(const RankSummary& summary, const std::string& pattern) {
    std::vector<const RangeFact*> chosen;
    for (const RangeFact& range : summary.ranges) {
        if (range.pattern != pattern) continue;
        if (chosen.empty() || range.startNs >= chosen.back()->endNs) chosen.push_back(&range);
    }
    return chosen;
}

/// True where ranges fill the time from the first to the last, as steps do.
bool fillTheirTime(const std::vector<const RangeFact*>& ranges) {
    if (ranges.size() < 2) return true;
    double coveredNs = 0;
    for (const RangeFact* range : ranges) coveredNs += static_cast<double>(range->endNs - range->startNs);
    return coveredNs >= kLeastCovered * static_cast<double>(ranges.back()->endNs - ranges.front()->startNs);
}

/// True where the ranges span a part of what the device did that is worth the name of steps.
bool spanDeviceWork(const RankSummary& summary, const std::vector<const RangeFact*>& ranges) {
    if (ranges.empty() || summary.deviceFirstNs > summary.deviceLastNs) return true;
    return static_cast<double>(ranges.back()->deviceEndNs - ranges.front()->deviceStartNs) >=
           kLeastSpan * static_cast<double>(summary.deviceLastNs - summary.deviceFirstNs);
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
            if (isNew) candidate = {stepNameOf(range.pattern), range.depth, 0, range.pattern};
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
        const size_t least = candidate.name == StepName::profilerStep ? 1
                             : candidate.name == StepName::saysStep   ? 2
                                                                      : 3;
        bool everywhere = true;
        bool anywhere = false;
        size_t with = 0, without = 0;
        std::optional<size_t> count;
        for (const RankSummary& summary : summaries) {
            if (!recordedAnything(summary)) continue;
            const std::vector<const RangeFact*> ranges = outermost(summary, candidate.pattern);
            const bool isPart =
                !fillTheirTime(ranges) || (candidate.name == StepName::other && !spanDeviceWork(summary, ranges));
            const size_t found = isPart ? 0 : ranges.size();
            // A recording that was cut may have lost its marks, where the name leaves no doubt.
            const bool cut = !isComplete(summary) && (found >= 1 || candidate.name != StepName::other);
            everywhere = everywhere && (found >= least || cut);
            anywhere = anywhere || found > 0;
            ++(found > 0 ? with : without);
            if (candidate.name == StepName::other && isComplete(summary))
                everywhere = everywhere && (!count || *count == found);
            if (isComplete(summary)) count = found;
        }
        // When all ranks died, none is left to tell the full number: a name that speaks of steps is then enough.
        if (everywhere && with > without && (count || (candidate.name != StepName::other && anywhere)))
            return candidate.pattern;
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
        loss.message = isComplete(summaries[s])
                           ? "the rank has no marks of steps of its own: it has those of its peers"
                           : "the rank's own marks of steps are lost: it has those of its peers, as far as its "
                             "recording goes";
        losses.push_back(std::move(loss));
    }
}

/// Of the ranges that repeat like `pattern`, the first in a step: a step's forward pass comes before its backward pass,
/// however long each takes.
std::string firstOfStep(const std::vector<RankSummary>& summaries, const std::string& pattern) {
    std::set<std::string> like;
    for (const RankSummary& summary : summaries)
        for (const RangeFact& range : summary.ranges) like.insert(range.pattern);
    for (const RankSummary& summary : summaries) {
        const auto own = outermost(summary, pattern);
        std::erase_if(like, [&](const std::string& other) {
            const auto theirs = outermost(summary, other);
            if (theirs.size() != own.size()) return true;
            for (size_t k = 0; k < own.size(); ++k)
                if (theirs[k]->depth != own[k]->depth || theirs[k]->startNs > own[k]->startNs ||
                    (k > 0 && theirs[k]->startNs < own[k - 1]->startNs))
                    return true;
            return false;
        });
    }
    for (const RankSummary& summary : summaries)
        for (const RangeFact& range : summary.ranges)
            if (like.count(range.pattern)) return range.pattern;
    return pattern;
}

std::vector<Boundaries> boundariesAt(const RankMarks& marks, const HostClocks& clocks) {
    std::vector<Boundaries> all(marks.size());
    for (size_t s = 0; s < marks.size(); ++s) {
        for (const StepMark& mark : marks[s]) {
            const int64_t ns = clocks.jobNs(s, mark.deviceNs);
            all[s].push_back(all[s].empty() ? ns : std::max(ns, all[s].back()));
        }
    }
    return all;
}

/// Marks between the calls' repetitions; empty when some rank shows none.
RankMarks marksOfCalls(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators) {
    RankMarks all(summaries.size());
    for (size_t s = 0; s < summaries.size(); ++s) {
        if (!recordedAnything(summaries[s])) continue;
        const std::optional<CallPeriod> period = findCallPeriod(summaries[s], static_cast<int32_t>(s), communicators);
        if (!period) return {};
        const auto& calls = summaries[s].calls;
        int64_t latestNs = INT64_MIN;
        const auto push = [&](int64_t hostNs, int64_t deviceNs) {
            latestNs = std::max(latestNs, deviceNs);
            all[s].push_back({hostNs, latestNs});
        };
        if (period->first == 0)
            push(calls[0].hostStartNs, std::min(summaries[s].deviceFirstNs, calls[0].arrivalNs));
        else
            push(calls[period->first - 1].hostStartNs + 1, calls[period->first - 1].endNs);
        for (size_t k = 1; k <= period->repeats; ++k) {
            const CallFact& last = calls[period->first + k * period->length - 1];
            push(last.hostStartNs + 1, last.endNs);
        }
    }
    return all;
}

/// Boundaries by marks on which the ranks agree; empty where they do not.
std::vector<Boundaries> agreedBoundaries(const std::vector<RankSummary>& summaries, const RankMarks& marks,
                                         const Encounters& encounters, const HostClocks& clocks,
                                         std::vector<store::Loss>& losses) {
    std::vector<Boundaries> all = boundariesAt(agreeingMarks(summaries, marks, encounters), clocks);
    if (!all.empty()) lendBoundaries(summaries, clocks, all, losses);
    return all;
}

RankMarks marksOf(const std::vector<RankSummary>& summaries, std::vector<StepMark> RankSummary::*marks) {
    RankMarks all;
    for (const RankSummary& summary : summaries) all.push_back(summary.*marks);
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

/// Steps of which a rank's recording left out calls, by number: what ranks waited for there is not told.
std::set<size_t> untoldSteps(const std::vector<RankSummary>& summaries, const std::vector<Boundaries>& all,
                             const HostClocks& clocks) {
    std::set<size_t> untold;
    for (size_t s = 0; s < summaries.size(); ++s) {
        for (const auto& [fromNs, untilNs] : summaries[s].gaps) {
            const int64_t from = clocks.jobNs(s, fromNs), until = clocks.jobNs(s, untilNs);
            const auto behind = std::upper_bound(all[s].begin(), all[s].end(), from);
            for (auto k = static_cast<size_t>(std::max<std::ptrdiff_t>(1, behind - all[s].begin())) - 1;
                 k + 1 < all[s].size() && all[s][k] <= until; ++k)
                untold.insert(k);
        }
    }
    return untold;
}

}  // namespace

Segmentation findSteps(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators,
                       const Encounters& encounters, const HostClocks& clocks) {
    Segmentation result;
    std::vector<Boundaries> all;
    const auto take = [&](std::string source, const RankMarks& marks) {
        if (!all.empty() || marks.empty()) return;
        all = agreedBoundaries(summaries, marks, encounters, clocks, result.losses);
        if (!all.empty()) result.source = std::move(source);
    };
    const auto takeRanges = [&](const std::string& pattern) {
        result.source = "nvtx:" + pattern;
        for (size_t s = 0; s < summaries.size(); ++s)
            all.push_back(boundariesOfPattern(summaries[s], s, pattern, clocks));
        lendBoundaries(summaries, clocks, all, result.losses);
    };
    const std::optional<std::string> pattern = bestPattern(summaries);
    if (pattern && stepNameOf(*pattern) != StepName::other) takeRanges(*pattern);
    take("updates", marksOf(summaries, &RankSummary::updateMarks));
    if (all.empty() && pattern) takeRanges(firstOfStep(summaries, *pattern));
    take("period", marksOf(summaries, &RankSummary::periodMarks));
    if (std::none_of(summaries.begin(), summaries.end(), [](const RankSummary& summary) { return summary.computes; }))
        take("period", marksOfCalls(summaries, communicators));
    if (all.empty()) {
        result.source = "none";
        all = oneStep(summaries, clocks);
    }
    const size_t warmUp = warmUpSteps(all);
    const std::set<size_t> untold = untoldSteps(summaries, all, clocks);
    if (!untold.empty())
        result.losses.push_back(
            {0,
             "calls_left_out",
             store::Severity::info,
             {},
             "hooks",
             static_cast<int64_t>(untold.size()),
             {},
             {},
             "light mode: a step has more calls than fit into a kilobyte, so that of those older "
             "than the ring only each second, fourth… step's are kept; the others are not analysed"});
    for (size_t s = 0; s < summaries.size(); ++s) {
        for (size_t k = 0; k + 1 < all[s].size(); ++k) {
            result.steps.push_back({summaries[s].rank, static_cast<int32_t>(k), all[s][k], all[s][k + 1] - all[s][k],
                                    k < warmUp || untold.contains(k)});
        }
    }
    return result;
}

}  // namespace rankscope::collector
