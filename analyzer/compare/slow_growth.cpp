// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/slow_growth.h"

#include <cmath>

#include "analyzer/compare/baseline_level.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::compare {
namespace {

constexpr size_t kFewestGrowing = 3;  // two values that grow are a change at one place, or at the other

struct Line {
    double slope = 0, error = 0;
};

/// Constant up to the last `growing` values, then a line.
Line fitHinge(const std::vector<double>& values, const std::vector<double>& weights, size_t growing, double noise) {
    const size_t hinge = values.size() - growing;
    const auto place = [&](size_t i) { return i < hinge ? 0.0 : static_cast<double>(i - hinge + 1); };
    double weight = 0, meanPlace = 0, meanValue = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        weight += weights[i];
        meanPlace += weights[i] * place(i);
        meanValue += weights[i] * values[i];
    }
    meanPlace /= weight;
    meanValue /= weight;
    double products = 0, squares = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double along = weights[i] * (place(i) - meanPlace);
        products += along * (values[i] - meanValue);
        squares += along * (place(i) - meanPlace);
    }
    return {products / squares, noise / std::sqrt(squares)};
}

}  // namespace

std::optional<Growth> findGrowth(const std::vector<double>& values, const std::vector<double>& weights, double noise,
                                 double degrees, double least) {
    std::optional<Growth> found;
    double surest = facts::studentTwoSided(1 - 2 * kSplitByChance, degrees);  // of one side
    for (size_t growing = kFewestGrowing; growing < values.size(); ++growing) {
        const Line line = fitHinge(values, weights, growing, noise);
        const double total = line.slope * static_cast<double>(growing);
        if (total < least || line.slope < surest * line.error) continue;
        surest = line.slope / line.error;
        found = {growing, total};
    }
    return found;
}

}  // namespace rankscope::compare
