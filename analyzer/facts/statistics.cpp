// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/statistics.h"

#include <algorithm>
#include <cmath>

namespace rankscope::facts {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double medianError(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double centre = median(values);
    std::vector<double> deviations;
    for (double value : values) deviations.push_back(std::abs(value - centre));
    return 1.2533 * 1.4826 * median(deviations) / std::sqrt(static_cast<double>(values.size()));
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double quartileHalfWidth(std::vector<double> values) {
    if (values.size() < 2) return 0;
    std::sort(values.begin(), values.end());
    return (values[values.size() * 3 / 4] - values[values.size() / 4]) / 2;
}

}  // namespace rankscope::facts
