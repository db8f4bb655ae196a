// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/run_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "analyzer/compare/distributions.h"

namespace rankscope::compare {
namespace {

constexpr size_t kFewestToSplit = 8;  // fewer fall apart by chance

double mean(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
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
        means.push_back(mean(std::span(values).subspan(i, width)));
    return variance(means) / static_cast<double>(means.size());
}

size_t trimmedCount(size_t steps) {
    if (steps < 5) return 0;
    return std::max<size_t>(1, static_cast<size_t>(kTrimmed * static_cast<double>(steps)));
}

/// Estimates the variance of one step, as a share of the run's typical one, over runs that have more than one; 0 where
/// none has.
double stepVariance(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now,
                    StepEstimator estimator) {
    double sum = 0, degrees = 0;
    for (const auto* side : {&base, &now})
        for (const ComparedRun& run : *side) {
            const RunLocation location = locate(run.stepsNs, estimator);
            const double ofRun = static_cast<double>(run.stepsNs.size()) - 1;
            sum += ofRun * location.variance / (location.value * location.value) * run.stepsPerSample;
            degrees += ofRun;
        }
    return degrees > 0 ? sum / degrees : 0;
}

Side sideOfRuns(const std::vector<ComparedRun>& runs, StepEstimator estimator, double ofAStep) {
    std::vector<double> logs;
    double own = 0, usual = 0;  // squared errors of typical steps: from the run's steps, from those of all runs
    size_t steps = 0;
    for (const ComparedRun& run : runs) {
        const RunLocation location = locate(run.stepsNs, estimator);
        logs.push_back(std::log(location.value));
        steps += run.stepsNs.size();
        own += location.error * location.error / (location.value * location.value);
        usual +=
            ofAStep / (static_cast<double>(run.stepsNs.size()) * run.stepsPerSample * location.kept * location.kept);
    }
    Side side = sideOf(std::move(logs));
    side.steps = steps;
    side.error2 = std::max(own, usual) / side.runs;
    return side;
}

double floored(double variance, double error2, double floor) {
    return std::max({variance, error2, floor * floor});
}

double pooledVariance(const Side& base, const Side& now) {
    return (base.degrees() * base.variance + now.degrees() * now.variance) / (base.degrees() + now.degrees());
}

/// Tells whether one side knows the noise of both: its own, and the other side's unless that is noisier.
bool knowsTheNoise(const Side& known, const Side& other) {
    return known.degrees() >= kKnowsTheNoise * other.degrees();
}
bool isNoisier(const Side& side, double variance, const Side& known, double knownVariance) {
    return varianceRatioOutside(variance / knownVariance, side.degrees(), known.degrees()) < kNoisierByChance;
}

}  // namespace

std::optional<StepModes> findModes(std::vector<double> steps) {
    const auto fewest = std::max<size_t>(
        kFewestOfAKind, static_cast<size_t>(std::ceil(kRareShare * static_cast<double>(steps.size()))));
    if (steps.size() < 2 * fewest || steps.size() < kFewestToSplit) return std::nullopt;
    std::ranges::sort(steps);
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
    const StepModes modes{mean(std::span(steps).first(best)), mean(std::span(steps).subspan(best)),
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
    std::ranges::sort(sorted);
    const double low = sorted[trimmed], high = sorted[sorted.size() - 1 - trimmed];
    std::vector<double> winsorised = steps;  // in their order, for the batches
    for (double& value : winsorised) value = std::clamp(value, low, high);
    RunLocation location;
    location.value = mean(std::span(sorted).subspan(trimmed, sorted.size() - 2 * trimmed));
    location.kept = static_cast<double>(sorted.size() - 2 * trimmed) / static_cast<double>(sorted.size());
    location.variance = variance(winsorised);
    const double error2 = std::max(location.variance / static_cast<double>(steps.size()), batchError2(winsorised));
    location.error = std::sqrt(error2) / location.kept;
    return location;
}

Side sideOf(std::vector<double> numbers) {
    Side side;
    side.runs = static_cast<double>(numbers.size());
    side.mean = mean(numbers);
    side.variance = variance(numbers);
    side.logs = std::move(numbers);
    return side;
}

TwoSides sidesOf(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now, StepEstimator estimator) {
    const double ofAStep = stepVariance(base, now, estimator);
    return {sideOfRuns(base, estimator, ofAStep), sideOfRuns(now, estimator, ofAStep)};
}

Side withEarlierNoise(Side side, const EarlierNoise& earlier) {
    const double own = side.degrees(), all = own + earlier.degrees;
    if (earlier.degrees <= 0 || all <= 0) return side;
    side.variance = (own * side.variance + earlier.squares) / all;
    side.otherDegrees += earlier.degrees;
    return side;
}

DifferenceNoise noiseOf(const Side& base, const Side& now, double floor) {
    DifferenceNoise noise;
    noise.degrees = base.degrees() + now.degrees();
    if (noise.degrees < 1) return noise;
    const double pooled = floored(pooledVariance(base, now), std::max(base.error2, now.error2), floor);
    noise.betweenRuns = std::sqrt(pooled);
    double error2 = pooled * (1 / base.runs + 1 / now.runs);
    if (std::min(base.degrees(), now.degrees()) >= 1) {
        const double baseVariance = floored(base.variance, base.error2, floor),
                     newVariance = floored(now.variance, now.error2, floor);
        const double first = baseVariance / base.runs, second = newVariance / now.runs;
        const bool baseKnows = knowsTheNoise(base, now), newKnows = knowsTheNoise(now, base);
        // As large on sides of the same size; else three runs that agree by chance would make many noisy ones sure.
        const bool isOwnLarger = first + second > 0.999 * error2;
        bool hasOwn = false;
        if (baseKnows)
            hasOwn = isNoisier(now, newVariance, base, baseVariance);
        else if (newKnows)
            hasOwn = isNoisier(base, baseVariance, now, newVariance);
        else
            hasOwn = std::min(base.runs, now.runs) >= kFewestForWelch ||
                     (isOwnLarger && differByMoreThanChance(baseVariance, base.degrees(), newVariance, now.degrees()));
        if (hasOwn) {
            error2 = first + second;
            noise.degrees = error2 * error2 / (first * first / base.degrees() + second * second / now.degrees());
        } else if (!baseKnows && !newKnows) {
            error2 = std::max(error2, first + second);
        }
    }
    noise.error = std::sqrt(error2);
    return noise;
}

bool differByMoreThanChance(double first, double firstDegrees, double second, double secondDegrees) {
    if (first < second) return differByMoreThanChance(second, secondDegrees, first, firstDegrees);
    return varianceRatioOutside(first / second, firstDegrees, secondDegrees) <
           (1 - kConfidence) / 2;  // either may be the larger one
}

TwoSides withMoreRuns(const TwoSides& sides, int more, double scale) {
    TwoSides planned = sides;
    for (Side* side : {&planned.base, &planned.now}) {
        if (side->runs < 2) side->variance = pooledVariance(sides.base, sides.now);
        side->variance *= scale;
        side->runs += more;
    }
    return planned;
}

}  // namespace rankscope::compare
