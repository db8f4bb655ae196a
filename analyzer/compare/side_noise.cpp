// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/side_noise.h"

#include <algorithm>
#include <cmath>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/distributions.h"

namespace rankscope::compare {
namespace {

/// Of one step, as a share of the run's typical one, over runs that have more than one.
class StepVariance {
  public:
    void add(const StepSample& run, const RunLocation& location) {
        const double degrees = static_cast<double>(run.stepsNs.size()) - 1;
        m_sum += degrees * location.variance / (location.value * location.value) * run.stepsPerSample;
        m_degrees += degrees;
    }
    /// Squared error of a run's typical step.
    double error2(const StepSample& run, const RunLocation& location) const {
        if (m_degrees <= 0) return 0;
        return m_sum / m_degrees /
               (static_cast<double>(run.stepsNs.size()) * run.stepsPerSample * location.kept * location.kept);
    }

  private:
    double m_sum = 0, m_degrees = 0;
};

std::vector<RunLocation> locateAll(const std::vector<StepSample>& runs, StepEstimator estimator, StepVariance& steps) {
    std::vector<RunLocation> locations;
    for (const StepSample& run : runs) {
        locations.push_back(locate(run.stepsNs, estimator));
        steps.add(run, locations.back());
    }
    return locations;
}

Side sideOf(const std::vector<StepSample>& runs, const std::vector<RunLocation>& locations, const StepVariance& steps) {
    Side side;
    side.runs = static_cast<double>(runs.size());
    double own = 0, usual = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
        const RunLocation& location = locations[i];
        side.logs.push_back(std::log(location.value));
        side.mean += side.logs.back();
        side.steps += runs[i].stepsNs.size();
        own += location.error * location.error / (location.value * location.value);
        usual += steps.error2(runs[i], location);
    }
    side.mean /= side.runs;
    side.error2 = std::max(own, usual) / side.runs;
    for (const double value : side.logs) side.variance += (value - side.mean) * (value - side.mean);
    if (side.logs.size() > 1) side.variance /= side.degrees();
    return side;
}

double floored(double variance, double error2, double floor) {
    return std::max({variance, error2, floor * floor});
}

double pooledVariance(const Side& base, const Side& now) {
    return (base.degrees() * base.variance + now.degrees() * now.variance) / (base.degrees() + now.degrees());
}

bool differByMoreThanChance(double first, double firstDegrees, double second, double secondDegrees) {
    if (first < second) return differByMoreThanChance(second, secondDegrees, first, firstDegrees);
    return varianceRatioOutside(first / second, firstDegrees, secondDegrees) <
           (1 - kConfidence) / 2;  // either may be the larger one
}

}  // namespace

TwoSides sidesOf(const std::vector<StepSample>& base, const std::vector<StepSample>& now, StepEstimator estimator) {
    StepVariance steps;
    const std::vector<RunLocation> first = locateAll(base, estimator, steps), second = locateAll(now, estimator, steps);
    return {sideOf(base, first, steps), sideOf(now, second, steps)};
}

DifferenceNoise noiseOf(const Side& base, const Side& now, double floor) {
    DifferenceNoise noise;
    noise.degrees = base.degrees() + now.degrees();
    if (noise.degrees < 1) return noise;
    const double pooled = floored(pooledVariance(base, now), std::max(base.error2, now.error2), floor);
    noise.betweenRuns = std::sqrt(pooled);
    double error2 = pooled * (1 / base.runs + 1 / now.runs);
    if (std::min(base.runs, now.runs) >= 2) {
        const double baseVariance = floored(base.variance, base.error2, floor),
                     newVariance = floored(now.variance, now.error2, floor);
        const double first = baseVariance / base.runs, second = newVariance / now.runs;
        const bool isEnough = std::min(base.runs, now.runs) >= kFewestForWelch;
        const bool isOwnLarger =
            first + second > 0.999 * error2;  // as large on sides of the same size; else three runs that agree by
                                              // chance would make many noisy ones sure
        if (isEnough ||
            (isOwnLarger && differByMoreThanChance(baseVariance, base.degrees(), newVariance, now.degrees()))) {
            error2 = first + second;
            noise.degrees = error2 * error2 / (first * first / base.degrees() + second * second / now.degrees());
        } else {
            error2 = std::max(error2, first + second);
        }
    }
    noise.error = std::sqrt(error2);
    return noise;
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
