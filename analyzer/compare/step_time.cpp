// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/step_time.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzer/compare/distributions.h"
#include "analyzer/compare/rank_test.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/recommend/student_t.h"

namespace rankscope::analyzer {
namespace {

constexpr const char* kMean = "mean";
constexpr const char* kTrimmedMean = "trimmed mean";

StepEstimator estimatorOf(const std::string& name) { return name == kMean ? StepEstimator::mean : StepEstimator::trimmedMean; }

/// The runs of one side, as logarithms.
struct Side {
    std::vector<double> logs;
    double mean = 0;
    double variance = 0;     // between runs; 0 for one run
    double error2 = 0;       // of a run's typical step, from its own steps: mean over runs

    double runs() const { return static_cast<double>(logs.size()); }
    double degrees() const { return runs() - 1; }
};

Side sideOf(const std::vector<StepSample>& runs, StepEstimator estimator) {
    Side side;
    for (const StepSample& run : runs) {
        const RunLocation location = locate(run.stepsNs, estimator);
        side.logs.push_back(std::log(location.value));
        side.mean += side.logs.back();
        side.error2 += location.error * location.error / (location.value * location.value);
    }
    side.mean /= side.runs();
    side.error2 /= side.runs();
    for (const double value : side.logs) side.variance += (value - side.mean) * (value - side.mean);
    if (side.logs.size() > 1) side.variance /= side.degrees();
    return side;
}

/// How uncertain the difference of two sides is.
struct Noise {
    double error = 0;     // standard error of the difference of the means
    double degrees = 0;   // of freedom; 0: not known
    double betweenRuns = 0;
};

double floored(double variance, double error2) { return std::max({variance, error2, kNoiseFloor * kNoiseFloor}); }

Noise noiseOf(const Side& base, const Side& now) {
    Noise noise;
    noise.degrees = base.degrees() + now.degrees();
    if (noise.degrees < 1) return noise;
    const double error2 = std::max(base.error2, now.error2);
    const double pooled = floored((base.degrees() * base.variance + now.degrees() * now.variance) / noise.degrees, error2);
    noise.betweenRuns = std::sqrt(pooled);
    noise.error = std::sqrt(pooled * (1 / base.runs() + 1 / now.runs()));
    if (std::min(base.logs.size(), now.logs.size()) < kFewestForWelch) return noise;
    const double first = floored(base.variance, base.error2) / base.runs(), second = floored(now.variance, now.error2) / now.runs();
    noise.error = std::sqrt(first + second);
    noise.degrees = (first + second) * (first + second) / (first * first / base.degrees() + second * second / now.degrees());
    return noise;
}

/// See the head of step_time.h. `error` is of the difference, `scale` sqrt(1/n + 1/m). As a share.
double smallestVisible(double error, double scale, double degrees, double threshold) {
    const double bound = std::max(error * std::sqrt(degrees / chiSquaredQuantile(1 - kNoiseBound, degrees)), kUsualNoise * std::sqrt(4 / degrees) * scale);
    const double claimed = std::max(studentTwoSided(kConfidence, degrees) * error, std::log1p(threshold));
    return std::expm1(claimed + normalQuantile(kFindingPower) * bound);
}

/// Runs to add on each side until a change of `resolution` would be seen; 0: more than kMostMoreRuns.
int moreRuns(const Side& base, const Side& now, const Noise& noise, double threshold, double resolution) {
    const auto enough = [&](int more) {
        const double scale = std::sqrt(1 / (base.runs() + more) + 1 / (now.runs() + more));
        return smallestVisible(noise.betweenRuns * scale, scale, base.degrees() + now.degrees() + 2 * more, threshold) <= resolution;
    };
    if (!enough(kMostMoreRuns)) return 0;
    int few = 0, many = kMostMoreRuns;  // what is visible falls with every run
    while (many - few > 1) {
        const int middle = (few + many) / 2;
        (enough(middle) ? many : few) = middle;
    }
    return many;
}

std::string noiseSource(const Side& base, const Side& now) {
    if (base.degrees() > 0 && now.degrees() > 0) return "runs of both sides";
    if (base.degrees() > 0) return "runs of the base";
    return now.degrees() > 0 ? "runs of the new side" : "none";
}

void findAllModes(const std::vector<StepSample>& runs, StepTimeChange& change) {
    for (const StepSample& run : runs)
        if (const auto modes = findModes(run.stepsNs)) change.modes.push_back({run.run, modes->low, modes->high, modes->highShare});
}

/// Samples of all runs stand for as many steps.
bool allAlike(const std::vector<StepSample>& base, const std::vector<StepSample>& now) {
    const auto isLikeFirst = [&](const StepSample& run) { return run.stepsPerSample == base.front().stepsPerSample; };
    return std::ranges::all_of(base, isLikeFirst) && std::ranges::all_of(now, isLikeFirst);
}

void judge(const Side& base, const Side& now, const StepTimeOptions& options, StepTimeChange& change) {
    const double difference = now.mean - base.mean;
    const double resolution = std::max(options.resolution, 2 * options.threshold);
    const Noise noise = noiseOf(base, now);
    if (noise.degrees < 1) {
        change.verdict = StepVerdict::notEnoughSamples;
        change.moreRuns = 2;  // three on each side: the least that tells noise from change
        return;
    }
    const double half = studentTwoSided(kConfidence, noise.degrees) * noise.error;
    change.interval = ConfidenceInterval{std::exp(difference - half), std::exp(difference + half)};
    change.pValue = studentOutside(std::abs(difference) / noise.error, noise.degrees);
    change.betweenRuns = noise.betweenRuns;
    change.smallestVisible = smallestVisible(noise.error, std::sqrt(1 / base.runs() + 1 / now.runs()), noise.degrees, options.threshold);
    if (std::min(base.logs.size(), now.logs.size()) >= kFewestForRanks) change.rankPValue = rankTestP(base.logs, now.logs);
    if (change.interval->low > 1 && *change.ratio >= 1 + options.threshold) {
        change.verdict = StepVerdict::regression;
    } else if (change.interval->high < 1 && *change.ratio <= 1 / (1 + options.threshold)) {
        change.verdict = StepVerdict::improvement;
    } else if (*change.smallestVisible <= resolution) {
        change.verdict = StepVerdict::noChange;
    } else {
        change.verdict = StepVerdict::notEnoughSamples;
        change.moreRuns = moreRuns(base, now, noise, options.threshold, resolution);
    }
}

}  // namespace

std::vector<double> typicalSteps(const std::vector<StepSample>& runs, const std::string& estimator) {
    std::vector<double> typical;
    for (const StepSample& run : runs) typical.push_back(locate(run.stepsNs, estimatorOf(estimator)).value);
    return typical;
}

StepTimeChange compareStepTimes(const std::vector<StepSample>& base, const std::vector<StepSample>& now, const StepTimeOptions& options) {
    StepTimeChange change;
    change.threshold = options.threshold;
    findAllModes(base, change);
    findAllModes(now, change);
    change.estimator = change.modes.empty() && allAlike(base, now) ? kTrimmedMean : kMean;
    const Side first = sideOf(base, estimatorOf(change.estimator)), second = sideOf(now, estimatorOf(change.estimator));
    change.baseNs = std::exp(first.mean);
    change.newNs = std::exp(second.mean);
    change.ratio = std::exp(second.mean - first.mean);
    change.noiseSource = noiseSource(first, second);
    judge(first, second, options, change);
    return change;
}

}  // namespace rankscope::analyzer
