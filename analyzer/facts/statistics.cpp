// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rankscope::facts {
namespace {

/// Returns the continued fraction of the incomplete beta function, from the tail on: 200 terms are far more than it
/// needs for x below the switch point.
double betaFraction(double a, double b, double x) {
    double fraction = 1;
    for (int m = 200; m >= 1; --m) {
        const double odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1));
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        fraction = 1 + odd / (1 + even / fraction);
    }
    return 1 / fraction;
}

}  // namespace

double mean(const std::vector<double>& values) {
    return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double medianOfSorted(const std::vector<double>& values) {
    if (values.empty()) return 0;
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

double medianOfOthers(const std::vector<double>& sorted, double left) {
    if (sorted.size() < 2) return 0;
    const auto gone = static_cast<size_t>(std::ranges::lower_bound(sorted, left) - sorted.begin());
    const auto at = [&](size_t place) { return sorted[place < gone ? place : place + 1]; };
    const size_t others = sorted.size() - 1;
    return (at((others - 1) / 2) + at(others / 2)) / 2;
}

double robustDeviation(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double centre = median(values);
    std::vector<double> deviations;
    for (double value : values) deviations.push_back(std::abs(value - centre));
    return 1.4826 * median(deviations);
}

double medianError(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    return 1.2533 * robustDeviation(values) / std::sqrt(static_cast<double>(values.size()));
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double quartileHalfWidth(std::vector<double> values) {
    if (values.size() < 2) return 0;
    std::ranges::sort(values);
    return (values[values.size() * 3 / 4] - values[values.size() / 4]) / 2;
}

double regularizedBeta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * betaFraction(a, b, x) / a : 1 - front * betaFraction(b, a, 1 - x) / b;
}

double studentOutside(double t, double degrees) {
    return regularizedBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double studentTwoSided(double confidence, double degrees) {
    const auto outside = [&](double t) { return studentOutside(t, degrees); };
    double low = 0, high = 1;
    while (high < 1e12 && outside(high) > 1 - confidence) high *= 2;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        (outside(middle) > 1 - confidence ? low : high) = middle;
    }
    return (low + high) / 2;
}

}  // namespace rankscope::facts
