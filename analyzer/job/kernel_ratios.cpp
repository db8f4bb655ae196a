// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/kernel_ratios.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"

namespace rankscope::job {
namespace {

struct Sample {
    size_t rank = 0;
    double medianNs = 0;
    double count = 0;
    double totalNs = 0;
};

/// Median of the sorted samples without those at the places `left` (ascending); 0 when none remain.
double medianWithout(const std::vector<Sample>& sorted, const std::vector<size_t>& left) {
    if (left.size() >= sorted.size()) return 0;
    const size_t count = sorted.size() - left.size();
    const auto at = [&](size_t place) {
        for (size_t gone : left) place += gone <= place ? 1 : 0;
        return sorted[place].medianNs;
    };
    return (at((count - 1) / 2) + at(count / 2)) / 2;
}

/// By sorted sample: the median of those outside of its rank's group.
std::vector<double> peerMedians(const std::vector<Sample>& sorted, const std::vector<int64_t>& groups) {
    std::unordered_map<int64_t, std::vector<size_t>> places;
    for (size_t i = 0; i < sorted.size(); ++i) places[groups[sorted[i].rank]].push_back(i);
    std::vector<double> medians(sorted.size());
    for (const auto& [group, members] : places) {
        const double median = medianWithout(sorted, members);
        for (size_t i : members) medians[i] = median;
    }
    return medians;
}

/// Which kernels share the rank's slowness. `byKey`: time of the rank, and of its peers for the same.
void spreadOf(const std::map<facts::KernelKey, std::pair<double, double>>& byKey, KernelRatio& ratio) {
    std::vector<double> ratios;
    const double slowFrom = 1 + kPartOfSlowness * (ratio.ratio - 1);
    double peers = 0, slowPeers = 0;
    for (const auto& [key, times] : byKey) {
        if (times.second <= 0) continue;
        ratios.push_back(times.first / times.second);
        peers += times.second;
        if (ratio.ratio <= 1 || ratios.back() < slowFrom) continue;
        ratio.slow.insert(key);
        slowPeers += times.second;
    }
    ratio.pace = facts::median(ratios);
    if (ratios.empty()) return;
    ratio.slowKernels =
        std::min(static_cast<double>(ratio.slow.size()) / static_cast<double>(ratios.size()), slowPeers / peers);
}

/// Against the ranks of other groups, from analysis.steps[firstStep] on; `groups` by index into analysis.ranks.
std::vector<KernelRatio> ratiosBetween(const Analysis& analysis, const std::vector<int64_t>& groups,
                                       size_t firstStep = 0) {
    std::map<std::pair<facts::KernelKey, int>, std::vector<Sample>> samples;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        for (const facts::KernelStatistics& k : analysis.ranks[r].kernels)
            samples[{k.key, k.step}].push_back(
                {r, k.medianNs, static_cast<double>(k.count), static_cast<double>(k.totalNs)});

    const size_t steps = analysis.steps.size();
    struct Sums {
        std::vector<double> own, peers;
        double compared = 0, total = 0;
        std::map<facts::KernelKey, std::pair<double, double>> byKey;
    };
    std::vector<Sums> sums(analysis.ranks.size(), {std::vector<double>(steps), std::vector<double>(steps)});
    for (auto& [where, values] : samples) {
        const auto step = std::ranges::lower_bound(analysis.steps, where.second);
        if (step == analysis.steps.end() || *step != where.second) continue;
        const auto index = static_cast<size_t>(step - analysis.steps.begin());
        if (index < firstStep) continue;
        std::ranges::sort(values, {}, &Sample::medianNs);
        const std::vector<double> peerNs = peerMedians(values, groups);
        for (size_t i = 0; i < values.size(); ++i) {
            Sums& sum = sums[values[i].rank];
            sum.total += values[i].totalNs;
            const double peer = peerNs[i];
            if (peer <= 0) continue;
            const double own = values[i].medianNs * values[i].count;
            const double peers = peer * values[i].count;
            sum.compared += values[i].totalNs;
            sum.own[index] += own;
            sum.peers[index] += peers;
            auto& key = sum.byKey[where.first];
            key.first += own;
            key.second += peers;
        }
    }
    std::vector<KernelRatio> result(analysis.ranks.size());
    for (size_t r = 0; r < result.size(); ++r) {
        KernelRatio& ratio = result[r];
        ratio.firstStep = firstStep;
        std::vector<double> known;
        for (size_t s = 0; s < steps; ++s) {
            ratio.perStep.push_back(sums[r].peers[s] > 0 ? sums[r].own[s] / sums[r].peers[s] : 0);
            if (ratio.perStep.back() > 0) known.push_back(ratio.perStep.back());
        }
        ratio.ratio = facts::median(known);
        ratio.error = facts::medianError(known);
        ratio.comparedShare = sums[r].total > 0 ? sums[r].compared / sums[r].total : 0;
        spreadOf(sums[r].byKey, ratio);
        double worst = 0;
        for (const auto& [key, times] : sums[r].byKey) {
            if (times.first - times.second <= worst) continue;
            worst = times.first - times.second;
            ratio.slowestKey = key;
            ratio.slowestRatio = times.second > 0 ? times.first / times.second : 0;
        }
    }
    return result;
}

}  // namespace

std::vector<KernelRatio> compareKernels(const Analysis& analysis) {
    return compareKernelsSince(analysis, 0);
}

std::vector<KernelRatio> compareKernelsSince(const Analysis& analysis, size_t firstStep) {
    std::vector<int64_t> alone(analysis.ranks.size());
    std::iota(alone.begin(), alone.end(), int64_t{0});
    return ratiosBetween(analysis, alone, firstStep);
}

std::vector<KernelRatio> compareKernelsBetweenHosts(const Analysis& analysis, size_t firstStep) {
    std::vector<int64_t> hosts;
    for (const facts::RankSummary& rank : analysis.ranks) hosts.push_back(analysis.facts.findRank(rank.rank)->hostId);
    return ratiosBetween(analysis, hosts, firstStep);
}

}  // namespace rankscope::job
