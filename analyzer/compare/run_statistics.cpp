// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rankscope::compare {
namespace {

constexpr size_t kFewestToSplit = 8;  // fewer fall apart by chance

double mean(const double* begin, const double* end) {
    return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}
double mean(const std::vector<double>& values) {
    return mean(values.data(), values.data() + values.size());
}

double variance(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double centre = mean(values);
    double sum = 0;
    for (const double value : values) sum += (value - centre) * (value - centre);
    return sum / static_cast<double>(values.size() - 1);
}

/// Squared standard error of the mean of serially correlated values: from means over batches of sqrt(n) neighbours. 0
/// when there are too few.
double batchError2(const std::vector<double>& values) {
    constexpr size_t kFewestValues = 16;  // four batches of four
    if (values.size() < kFewestValues) return 0;
    const auto width = static_cast<size_t>(std::sqrt(static_cast<double>(values.size())));
    std::vector<double> means;
    for (size_t i = 0; i + width <= values.size(); i += width)
        means.push_back(mean(values.data() + i, values.data() + i + width));
    return variance(means) / static_cast<double>(means.size());
}

size_t trimmedCount(size_t steps) {
    if (steps < 5) return 0;
    return std::max<size_t>(1, static_cast<size_t>(kTrimmed * static_cast<double>(steps)));
}

}  // namespace

std::optional<StepModes> findModes(std::vector<double> steps) {
    const auto fewest = std::max<size_t>(
        kFewestOfAKind, static_cast<size_t>(std::ceil(kRareShare * static_cast<double>(steps.size()))));
    if (steps.size() < 2 * fewest || steps.size() < kFewestToSplit) return std::nullopt;
    std::sort(steps.begin(), steps.end());
    std::vector<double> sums(steps.size() + 1), squares(steps.size() + 1);
    const double centre = mean(steps);  // sums of squares around it lose no digits
    for (size_t i = 0; i < steps.size(); ++i) {
        const double x = steps[i] - centre;
        sums[i + 1] = sums[i] + x;
        squares[i + 1] = squares[i] + x * x;
    }
    const auto spread = [&](size_t from, size_t until) {
        const double n = static_cast<double>(until - from), sum = sums[until] - sums[from];
        return std::max(0.0, squares[until] - squares[from] - sum * sum / n);
    };
    size_t best = 0;
    double least = 0;
    for (size_t at = fewest; at + fewest <= steps.size(); ++at) {
        const double inside = spread(0, at) + spread(at, steps.size());
        if (best == 0 || inside < least) {
            best = at;
            least = inside;
        }
    }
    const StepModes modes{mean(steps.data(), steps.data() + best),
                          mean(steps.data() + best, steps.data() + steps.size()),
                          static_cast<double>(steps.size() - best) / static_cast<double>(steps.size())};
    const double deviation = std::sqrt(least / static_cast<double>(steps.size() - 2));
    const double apart = modes.high - modes.low;
    if (apart < kApart * deviation || apart < kWorthIt * centre) return std::nullopt;
    return modes;
}

RunLocation locate(const std::vector<double>& steps, StepEstimator estimator) {
    if (steps.empty()) return {};
    const size_t trimmed = estimator == StepEstimator::mean ? 0 : trimmedCount(steps.size());
    std::vector<double> sorted = steps;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[trimmed], high = sorted[sorted.size() - 1 - trimmed];
    std::vector<double> winsorised = steps;  // in their order, for the batches
    for (double& value : winsorised) value = std::clamp(value, low, high);
    RunLocation location;
    location.value = mean(sorted.data() + trimmed, sorted.data() + sorted.size() - trimmed);
    location.kept = static_cast<double>(sorted.size() - 2 * trimmed) / static_cast<double>(sorted.size());
    location.variance = variance(winsorised);
    const double error2 = std::max(location.variance / static_cast<double>(steps.size()), batchError2(winsorised));
    location.error = std::sqrt(error2) / location.kept;
    return location;
}

}  // namespace rankscope::compare
