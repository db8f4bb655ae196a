// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/piecewise_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analyzer/facts/statistics.h"

namespace rankscope::costs {
namespace {

constexpr size_t kMostSizes = 64;  // what the search over breaks looks at; more are thinned evenly
constexpr size_t kFewestSizesPerPiece = 3;
constexpr double kResolution =
    0.03;  // measurements scatter by some per cent: deviations below are no reason for another piece

struct Line {
    double alphaNs = 0;
    double betaNsPerByte = 0;
    double squares = 0;  // of relative errors
};

double squaresOf(const std::vector<SizedTime>& points, size_t begin, size_t end, const Line& line) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) {
        const double error = (line.alphaNs + line.betaNsPerByte * points[i].bytes) / points[i].timeNs - 1;
        sum += error * error;
    }
    return sum;
}

/// Least squares of (alpha + beta x bytes) / time - 1 over points[begin, end), neither parameter negative.
Line lineThrough(const std::vector<SizedTime>& points, size_t begin, size_t end) {
    double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
    for (size_t i = begin; i < end; ++i) {
        const double u = 1 / points[i].timeNs, v = points[i].bytes / points[i].timeNs;
        uu += u * u;
        uv += u * v;
        vv += v * v;
        u1 += u;
        v1 += v;
    }
    Line line;
    const double determinant = uu * vv - uv * uv;
    if (determinant > 1e-12 * uu * vv) {
        line.alphaNs = (u1 * vv - v1 * uv) / determinant;
        line.betaNsPerByte = (v1 * uu - u1 * uv) / determinant;
    }
    if (line.alphaNs < 0 || determinant <= 1e-12 * uu * vv) line = {0, v1 / vv, 0};
    if (line.betaNsPerByte < 0) line = {u1 / uu, 0, 0};
    line.squares = squaresOf(points, begin, end, line);
    return line;
}

std::vector<SizedTime> thinned(const std::vector<SizedTime>& points) {
    if (points.size() <= kMostSizes) return points;
    std::vector<SizedTime> kept;
    for (size_t i = 0; i < kMostSizes; ++i) kept.push_back(points[i * (points.size() - 1) / (kMostSizes - 1)]);
    return kept;
}

/// Best breaks for every number of pieces by dynamic programming; the criterion chooses among them.
std::vector<FitPiece> bestPieces(const std::vector<SizedTime>& points) {
    const size_t n = points.size();
    const size_t most = std::min(FitThresholds::kMostPieces, std::max<size_t>(1, n / kFewestSizesPerPiece));
    std::vector<std::vector<Line>> lines(n, std::vector<Line>(n + 1));
    for (size_t begin = 0; begin < n; ++begin)
        for (size_t end = begin + std::min(n, kFewestSizesPerPiece); end <= n; ++end)
            lines[begin][end] = lineThrough(points, begin, end);
    const double infinite = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> cost(most + 1, std::vector<double>(n + 1, infinite));
    std::vector<std::vector<size_t>> from(most + 1, std::vector<size_t>(n + 1, 0));
    cost[0][0] = 0;
    for (size_t k = 1; k <= most; ++k)
        for (size_t end = kFewestSizesPerPiece; end <= n; ++end)
            for (size_t begin = 0; begin + kFewestSizesPerPiece <= end; ++begin) {
                const double total = cost[k - 1][begin] + lines[begin][end].squares;
                if (total >= cost[k][end]) continue;
                cost[k][end] = total;
                from[k][end] = begin;
            }
    size_t best = 1;
    double lowest = infinite;
    for (size_t k = 1; k <= most; ++k) {
        if (std::isinf(cost[k][n])) continue;
        const auto count = static_cast<double>(n);
        const double criterion = count * std::log(cost[k][n] / count + kResolution * kResolution) +
                                 (3 * static_cast<double>(k) - 1) * std::log(count);
        if (criterion >= lowest) continue;
        lowest = criterion;
        best = k;
    }
    std::vector<FitPiece> pieces;
    for (size_t k = best, end = n; k > 0; end = from[k][end], --k) {
        const size_t begin = from[k][end];
        pieces.push_back({points[begin].bytes, lines[begin][end].alphaNs, lines[begin][end].betaNsPerByte});
    }
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
}

/// True when the data are too thin; says why in fit.refused.
bool refuseThin(PiecewiseFit& fit) {
    if (fit.samples < FitThresholds::kFewestSamples)
        fit.refused = fmt::format("{} samples, a fit needs {}", fit.samples, FitThresholds::kFewestSamples);
    else if (fit.sizes < FitThresholds::kFewestSizes)
        fit.refused =
            fmt::format("{} size{}, a fit needs {}", fit.sizes, fit.sizes == 1 ? "" : "s", FitThresholds::kFewestSizes);
    else if (fit.largestBytes < FitThresholds::kSmallestRange * fit.smallestBytes)
        fit.refused = fmt::format("sizes differ by {:.1f}x, a fit needs {:.0f}x", fit.largestBytes / fit.smallestBytes,
                                  FitThresholds::kSmallestRange);
    return !fit.holds();
}

}  // namespace

bool PiecewiseFit::holdsAt(double bytes) const {
    return holds() && bytes * FitThresholds::kExtrapolation >= smallestBytes &&
           bytes <= largestBytes * FitThresholds::kExtrapolation;
}

double PiecewiseFit::timeNs(double bytes) const {
    if (pieces.empty()) return 0;
    size_t i = 0;
    while (i + 1 < pieces.size() && pieces[i + 1].fromBytes <= bytes) ++i;
    return pieces[i].alphaNs + pieces[i].betaNsPerByte * bytes;
}

PiecewiseFit fitPieces(const std::vector<SizedTime>& samples) {
    PiecewiseFit fit;
    std::map<double, std::vector<double>> bySize;
    for (const SizedTime& sample : samples)
        if (sample.bytes > 0 && sample.timeNs > 0) bySize[sample.bytes].push_back(sample.timeNs);
    std::vector<SizedTime> points;
    std::vector<double> scatters;
    for (const auto& [bytes, times] : bySize) {
        points.push_back({bytes, facts::median(times)});
        fit.samples += static_cast<int>(times.size());
        for (double time : times) scatters.push_back(std::abs(time / points.back().timeNs - 1));
    }
    fit.sizes = static_cast<int>(points.size());
    if (!points.empty()) {
        fit.smallestBytes = points.front().bytes;
        fit.largestBytes = points.back().bytes;
        fit.scatter = facts::median(scatters);
    }
    if (refuseThin(fit)) return fit;
    fit.pieces = bestPieces(thinned(points));
    for (const SizedTime& point : points)
        fit.residual += std::abs(fit.timeNs(point.bytes) / point.timeNs - 1) / static_cast<double>(points.size());
    if (fit.residual > FitThresholds::kLargestResidual)
        fit.refused = fmt::format("times deviate from every line by {:.0f} %, a fit may by {:.0f} %",
                                  100 * fit.residual, 100 * FitThresholds::kLargestResidual);
    return fit;
}

}  // namespace rankscope::costs
