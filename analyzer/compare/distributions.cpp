// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/distributions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyzer/facts/statistics.h"

namespace rankscope::compare {
namespace {

/// P(a, x). The series has positive terms only, so that nothing cancels; it needs about x + 10 sqrt(x) of them.
double regularizedGamma(double a, double x) {
    if (x <= 0) return 0;
    double term = std::exp(a * std::log(x) - x - std::lgamma(a + 1)), sum = term;
    for (double n = a + 1; term > sum * 1e-17 || n < x; ++n) {
        term *= x / n;
        sum += term;
        if (n > a + x + 10000) break;
    }
    return sum;
}

/// Twice the rank of every value, `a` first: whole numbers, ties too; of n values they sum to n (n + 1).
std::vector<int> doubledRanks(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> all = a;
    all.insert(all.end(), b.begin(), b.end());
    std::vector<int> ranks;
    for (const double value : all) {
        const auto below = std::ranges::count_if(all, [&](double other) { return other < value; });
        const auto equal = std::ranges::count(all, value);
        ranks.push_back(static_cast<int>(2 * below + equal + 1));
    }
    return ranks;
}

double sumOfFirst(const std::vector<int>& ranks, size_t chosen) {
    return std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(chosen), 0.0);
}

/// Returns the p value of the sum of the first `chosen` of these ranks.
double normalP(const std::vector<int>& ranks, size_t chosen) {
    const double n = static_cast<double>(ranks.size()), k = static_cast<double>(chosen);
    double squares = 0;
    for (const int rank : ranks) squares += (rank - (n + 1)) * (rank - (n + 1));
    const double deviation = std::sqrt(k * (n - k) / n * squares / (n - 1));
    const double distance =
        std::max(0.0, std::abs(sumOfFirst(ranks, chosen) - (n + 1) * k) - 1);  // ranks are doubled: 1 is half a rank
    return deviation > 0 ? std::erfc(distance / deviation / std::sqrt(2.0)) : 1;
}

}  // namespace

double chiSquaredQuantile(double p, double degrees) {
    double low = 0, high = degrees + 10;
    while (regularizedGamma(degrees / 2, high / 2) < p && high < 1e9) high *= 2;
    for (int i = 0; i < 80; ++i) {
        const double middle = (low + high) / 2;
        (regularizedGamma(degrees / 2, middle / 2) < p ? low : high) = middle;
    }
    return (low + high) / 2;
}

double normalBelow(double x) {
    return std::erfc(-x / std::sqrt(2.0)) / 2;
}

double varianceRatioOutside(double ratio, double degreesAbove, double degreesBelow) {
    return facts::regularizedBeta(degreesBelow / 2, degreesAbove / 2,
                                  degreesBelow / (degreesBelow + degreesAbove * ratio));
}

double rankTestP(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.empty() || b.empty()) return 1;
    if (a.size() > b.size()) return rankTestP(b, a);
    const std::vector<int> ranks = doubledRanks(a, b);
    if (ranks.size() > kMostExact) return normalP(ranks, a.size());
    const size_t total = ranks.size() * (ranks.size() + 1);
    // ways[k][s]: to choose k values whose doubled ranks sum to s
    std::vector<std::vector<double>> ways(a.size() + 1, std::vector<double>(total + 1));
    ways[0][0] = 1;
    for (const int rank : ranks)
        for (size_t k = a.size(); k >= 1; --k)
            for (size_t s = total; s >= static_cast<size_t>(rank); --s)
                ways[k][s] += ways[k - 1][s - static_cast<size_t>(rank)];
    const auto centre = static_cast<double>((ranks.size() + 1) * a.size());
    const double distance = std::abs(sumOfFirst(ranks, a.size()) - centre) - 1e-9;
    double all = 0, extreme = 0;
    for (size_t s = 0; s < ways[a.size()].size(); ++s) {
        all += ways[a.size()][s];
        if (std::abs(static_cast<double>(s) - centre) >= distance) extreme += ways[a.size()][s];
    }
    return extreme / all;
}

double smallestRankTestP(size_t a, size_t b) {
    if (a == 0 || b == 0) return 1;
    double ways = 1;
    for (size_t i = 1; i <= a; ++i) ways *= static_cast<double>(b + i) / static_cast<double>(i);
    return std::min(1.0, 2 / ways);
}

}  // namespace rankscope::compare
