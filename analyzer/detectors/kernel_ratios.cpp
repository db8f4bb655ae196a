// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/kernel_ratios.h"

#include <algorithm>
#include <map>

#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

struct Sample {
    size_t rank = 0;
    double medianNs = 0;
    double count = 0;
    double totalNs = 0;
};

/// Median of the sorted samples that are peers of `own`; 0 when there is none.
template <typename IsPeer>
double peerMedian(const std::vector<Sample>& sorted, IsPeer&& isPeer) {
    size_t count = 0;
    for (const Sample& sample : sorted) count += isPeer(sample.rank);
    if (count == 0) return 0;
    double lower = 0;
    size_t seen = 0;
    for (const Sample& sample : sorted) {
        if (!isPeer(sample.rank)) continue;
        ++seen;
        if (seen == (count + 1) / 2) lower = sample.medianNs;
        if (seen == count / 2 + 1) return (lower + sample.medianNs) / 2;
    }
    return lower;
}

template <typename ArePeers>
std::vector<KernelRatio> ratiosAmong(const Analysis& analysis, ArePeers&& arePeers) {
    std::map<std::pair<KernelKey, int>, std::vector<Sample>> samples;
    for (size_t r = 0; r < analysis.ranks.size(); ++r)
        for (const KernelStatistics& k : analysis.ranks[r].kernels)
            samples[{k.key, k.step}].push_back({r, k.medianNs, static_cast<double>(k.count), static_cast<double>(k.totalNs)});

    const size_t steps = analysis.steps.size();
    struct Sums {
        std::vector<double> own, peers;
        double compared = 0, total = 0;
        std::map<KernelKey, std::pair<double, double>> byKey;
    };
    std::vector<Sums> sums(analysis.ranks.size());
    for (Sums& sum : sums) {
        sum.own.assign(steps, 0);
        sum.peers.assign(steps, 0);
    }
    for (auto& [where, values] : samples) {
        const auto step = std::lower_bound(analysis.steps.begin(), analysis.steps.end(), where.second);
        if (step == analysis.steps.end() || *step != where.second) continue;
        const auto index = static_cast<size_t>(step - analysis.steps.begin());
        std::sort(values.begin(), values.end(), [](const Sample& a, const Sample& b) { return a.medianNs < b.medianNs; });
        for (size_t i = 0; i < values.size(); ++i) {
            Sums& sum = sums[values[i].rank];
            sum.total += values[i].totalNs;
            const double peer = peerMedian(values, [&, own = values[i].rank](size_t other) { return arePeers(own, other); });
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
        std::vector<double> known;
        for (size_t s = 0; s < steps; ++s) {
            ratio.perStep.push_back(sums[r].peers[s] > 0 ? sums[r].own[s] / sums[r].peers[s] : 0);
            if (ratio.perStep.back() > 0) known.push_back(ratio.perStep.back());
        }
        ratio.ratio = median(known);
        ratio.error = medianError(known);
        ratio.comparedShare = sums[r].total > 0 ? sums[r].compared / sums[r].total : 0;
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

std::vector<KernelRatio> kernelRatios(const Analysis& analysis) {
    return ratiosAmong(analysis, [](size_t own, size_t other) { return own != other; });
}

std::vector<KernelRatio> kernelRatiosBetweenHosts(const Analysis& analysis) {
    std::vector<int64_t> hosts;
    for (const RankSummary& rank : analysis.ranks) hosts.push_back(analysis.facts.findRank(rank.rank)->hostId);
    return ratiosAmong(analysis, [&](size_t own, size_t other) { return hosts[own] != hosts[other]; });
}

}  // namespace rankscope::analyzer
