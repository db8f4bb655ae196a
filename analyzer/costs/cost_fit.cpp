// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/cost_fit.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::costs {
namespace {

struct Point {
    double bytes = 0;
    double timeNs = 0;
};

constexpr double kAlike = 1.1;  // sizes closer than this count as one: a slope between them is their noise

/// Takes the median time per size: transfers are disturbed upwards only (shared links), and a size seen often must not
/// outweigh the others.
std::vector<Point> medianPerSize(const TimesBySize& timesBySize) {
    std::vector<Point> points;
    for (auto first = timesBySize.begin(); first != timesBySize.end();) {
        std::vector<double> sizes, times;
        auto at = first;
        for (; at != timesBySize.end() && at->first <= kAlike * first->first; ++at) {
            sizes.insert(sizes.end(), at->second.size(), at->first);
            times.insert(times.end(), at->second.begin(), at->second.end());
        }
        points.push_back({facts::median(std::move(sizes)), facts::median(std::move(times))});
        first = at;
    }
    return points;
}

/// Fits by Theil-Sen: the median of the slopes between all pairs of sizes, of at most kMost sizes spread over the
/// range.
CostLine theilSen(std::vector<Point> points) {
    constexpr size_t kMost = 64;
    if (points.size() > kMost) {
        std::vector<Point> thinned;
        for (size_t i = 0; i < kMost; ++i) thinned.push_back(points[i * (points.size() - 1) / (kMost - 1)]);
        points = thinned;
    }
    std::vector<double> slopes;
    for (size_t i = 0; i < points.size(); ++i)
        for (size_t j = i + 1; j < points.size(); ++j)
            slopes.push_back((points[j].timeNs - points[i].timeNs) / (points[j].bytes - points[i].bytes));
    CostLine line;
    line.betaNsPerByte = std::max(0.0, facts::median(slopes));
    std::vector<double> intercepts;
    for (const Point& point : points) intercepts.push_back(point.timeNs - line.betaNsPerByte * point.bytes);
    line.alphaNs = std::max(0.0, facts::median(intercepts));
    line.source = "fit";
    return line;
}

CostLine atRate(const std::vector<Point>& points, double betaNsPerByte, bool atLeast) {
    CostLine line;
    line.betaNsPerByte = betaNsPerByte;
    std::vector<double> rest;
    for (const Point& point : points) rest.push_back(point.timeNs - betaNsPerByte * point.bytes);
    line.alphaNs = std::max(0.0, facts::median(rest));
    line.source = atLeast ? "best bandwidth reached as prior (sizes differ by less than 4x)"
                          : "link peak as prior (sizes differ by less than 4x)";
    return line;
}

}  // namespace

double totalNs(const TimesBySize& times) {
    double sum = 0;
    for (const auto& [bytes, ofSize] : times) sum = std::accumulate(ofSize.begin(), ofSize.end(), sum);
    return sum;
}

std::optional<CostLine> lineThrough(const TimesBySize& times, store::Op op, int ranks,
                                    const std::optional<double>& ceiling, bool atLeast) {
    if (times.empty()) return std::nullopt;
    const std::vector<Point> points = medianPerSize(times);
    if (times.rbegin()->first >= CostLine::kSmallestRange * times.begin()->first) return theilSen(points);
    if (!ceiling) return std::nullopt;
    return atRate(points, facts::busFactor(op, ranks) / *ceiling, atLeast);
}

std::vector<CostFit> fitCosts(const facts::TraceFacts& facts, const LinkPeaks& peaks) {
    // Each algorithm and protocol has its own line; one through points of two is neither's.
    using Choice = std::pair<store::Algorithm, store::Protocol>;
    std::map<std::pair<int64_t, store::Op>, std::map<Choice, TimesBySize>> samples;
    for (const store::Collective& collective : facts.collectives) {
        if (!collective.transferNs || !collective.bytes || *collective.bytes <= 0 || *collective.transferNs <= 0)
            continue;
        samples[{collective.communicatorId, collective.op}][{collective.algorithm, collective.protocol}]
               [static_cast<double>(*collective.bytes)]
                   .push_back(static_cast<double>(*collective.transferNs));
    }
    std::vector<CostFit> fits;
    for (const auto& [who, byChoice] : samples) {
        const auto& [id, op] = who;
        const facts::Communicator* communicator = facts.findCommunicator(id);
        if (communicator == nullptr) continue;
        const auto most = std::ranges::max_element(byChoice, {}, [](const auto& one) { return totalNs(one.second); });
        std::optional<double> ceiling = peaks.busCeiling(*communicator, op);
        // That of rings; trees between two nodes and the NVSwitch's sums exceed it.
        const AlgorithmChoice choice{most->first.first, most->first.second};
        if (const auto link = linkModel(peaks, *communicator, op))
            *ceiling *= std::max(1.0, bandwidthShare(*link, op, choice, kAnySize).high);
        if (const auto line =
                lineThrough(most->second, op, communicator->size, ceiling, peaks.atLeast(*communicator, op)))
            fits.push_back({*line, id, op, ceiling});
    }
    return fits;
}

}  // namespace rankscope::costs
