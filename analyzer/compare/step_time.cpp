// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/step_time.h"

#include <algorithm>
#include <cmath>

#include "analyzer/compare/distributions.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::compare {
namespace {

constexpr const char* kMean = "mean";
constexpr const char* kTrimmedMean = "trimmed mean";

StepEstimator estimatorOf(const std::string& name) {
    return name == kMean ? StepEstimator::mean : StepEstimator::trimmedMean;
}

/// See the head of step_time.h. As a share.
double smallestVisible(const TwoSides& sides, const DifferenceNoise& noise, const StepTimeOptions& options) {
    const double error = noise.error, degrees = noise.degrees;
    const double scale = std::sqrt(1 / sides.base.runs + 1 / sides.now.runs);
    const double bound = std::max(error * std::sqrt(degrees / chiSquaredQuantile(1 - kNoiseBound, degrees)),
                                  kUsualNoise * std::sqrt(4 / degrees) * scale);
    const double claimed =
        std::max(facts::studentTwoSided(options.confidence, degrees) * error, std::log1p(options.threshold));
    return std::expm1(claimed + kPowerQuantile * bound);
}

/// Counts the runs to add on each side until a change of resolutionOf() would be seen, if the noise has `scale` times
/// the variance estimated; more than kMostMoreRuns: not with so many.
int runsUntilVisible(const TwoSides& sides, const StepTimeOptions& options, double scale) {
    const auto enough = [&](int more) {
        const TwoSides planned = withMoreRuns(sides, more, scale);
        return smallestVisible(planned, noiseOf(planned.base, planned.now), options) <= resolutionOf(options);
    };
    if (!enough(kMostMoreRuns)) return kMostMoreRuns + 1;
    int few = 0, many = kMostMoreRuns;  // what is visible falls with every run
    while (many - few > 1) {
        const int middle = (few + many) / 2;
        (enough(middle) ? many : few) = middle;
    }
    return many;
}

/// Returns how many runs to ask for on each side; 0: more would not help. The noise may be larger than it looks, and
/// who runs so many more wants to know then.
int moreRuns(const TwoSides& sides, const StepTimeOptions& options) {
    const double degrees = sides.base.degrees() + sides.now.degrees();
    if (runsUntilVisible(sides, options, 1) > kMostMoreRuns) return 0;
    return std::min(kMostMoreRuns,
                    runsUntilVisible(sides, options, degrees / chiSquaredQuantile(kPlannedNoise, degrees)));
}

/// Tells how well a change of resolutionOf() is found, and how many runs of the new side find it.
Detection detectionOf(const Side& now, const DifferenceNoise& noise, const StepTimeOptions& options) {
    Detection detection{resolutionOf(options), foundShare(noise, options), static_cast<int>(now.runs), 0};
    const auto isEnough = [&](int runs) {
        const double factor = runs / now.runs;
        DifferenceNoise planned = noise;
        planned.error /= std::sqrt(factor);
        planned.degrees *= factor;
        return foundShare(planned, options) >= kFoundWell;
    };
    if (detection.found >= kFoundWell) detection.enoughRuns = detection.runs;
    if (detection.enoughRuns > 0 || detection.runs >= kMostMoreRuns || !isEnough(kMostMoreRuns)) return detection;
    int few = detection.runs, many = kMostMoreRuns;  // what is found grows with every run
    while (many - few > 1) {
        const int middle = (few + many) / 2;
        (isEnough(middle) ? many : few) = middle;
    }
    detection.enoughRuns = many;
    return detection;
}

std::string noiseSource(const Side& base, const Side& now) {
    if (base.degrees() > 0 && now.degrees() > 0) return "runs of both sides";
    if (base.degrees() > 0) return "runs of the base";
    return now.degrees() > 0 ? "runs of the new side" : "none";
}

/// Tells whether at least half of the runs have steps of two kinds.
bool findAllModes(const std::vector<ComparedRun>& runs, StepTimeChange& change) {
    const size_t before = change.modes.size();
    for (const ComparedRun& run : runs)
        if (const auto modes = findModes(run.stepsNs))
            change.modes.push_back({run.name, modes->low, modes->high, modes->highShare});
    return 2 * (change.modes.size() - before) >= runs.size();
}

/// Tells whether samples of all runs stand for as many steps.
bool allAlike(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now) {
    const auto isLikeFirst = [&](const ComparedRun& run) { return run.stepsPerSample == base.front().stepsPerSample; };
    return std::ranges::all_of(base, isLikeFirst) && std::ranges::all_of(now, isLikeFirst);
}

bool haveOneStepEach(const std::vector<ComparedRun>& runs) {
    return std::ranges::all_of(
        runs, [](const ComparedRun& run) { return run.stepsNs.size() * static_cast<size_t>(run.stepsPerSample) <= 1; });
}

void judge(const TwoSides& sides, const StepTimeOptions& options, StepTimeChange& change) {
    const auto& [base, now] = sides;
    const double difference = now.mean - base.mean;
    const DifferenceNoise noise = noiseOf(base, now);
    change.verdict = StepVerdict::notEnoughSamples;
    if (noise.degrees < 1) {
        change.lacking = "one run a side does not tell how much runs differ";
        change.moreRuns = kFewestMoreRuns;
        return;
    }
    const double half = facts::studentTwoSided(options.confidence, noise.degrees) * noise.error;
    change.interval = facts::Estimate{std::exp(difference - half), std::exp(difference), std::exp(difference + half)};
    change.pValue = facts::studentOutside(std::abs(difference) / noise.error, noise.degrees);
    change.betweenRuns = noise.betweenRuns;
    change.smallestVisible = smallestVisible(sides, noise, options);
    change.detection = detectionOf(sides.now, noise, options);
    change.fewForExceptions = smallestRankTestP(base.logs.size(), now.logs.size()) / 2 > 1 - kConfidence;
    if (std::min(base.logs.size(), now.logs.size()) >= kFewestForRanks)
        change.rankPValue = rankTestP(base.logs, now.logs);
    if (std::min(base.steps, now.steps) < 2) {
        change.lacking = "one step does not tell a slow run from a slow step";
        change.moreRuns = kFewestMoreRuns;
    } else if (change.interval->low > 1 && *change.ratio >= 1 + options.threshold) {
        change.verdict = StepVerdict::regression;
    } else if (change.interval->high < 1 && *change.ratio <= 1 / (1 + options.threshold)) {
        change.verdict = StepVerdict::improvement;
    } else if (*change.smallestVisible <= resolutionOf(options)) {
        change.verdict = StepVerdict::noChange;
    } else {
        change.moreRuns = moreRuns(sides, options);
    }
}

StepTimeChange compareBy(const char* estimator, const std::vector<ComparedRun>& base,
                         const std::vector<ComparedRun>& now, const StepTimeOptions& options) {
    StepTimeChange change;
    change.threshold = options.threshold;
    change.confidence = options.confidence;
    change.estimator = estimator;
    TwoSides sides = sidesOf(base, now, estimatorOf(estimator));
    sides.base = withEarlierNoise(std::move(sides.base), options.earlier);
    change.baseNs = std::exp(sides.base.mean);
    change.newNs = std::exp(sides.now.mean);
    change.ratio = std::exp(sides.now.mean - sides.base.mean);
    change.noiseSource = noiseSource(sides.base, sides.now);
    judge(sides, options, change);
    if (change.lacking.empty() && haveOneStepEach(base) != haveOneStepEach(now)) {
        change.verdict = StepVerdict::notEnoughSamples;
        change.lacking =
            "runs of one step hold their first alone, which need not be like the others: record as many steps on both "
            "sides";
        change.moreRuns = 0;
    }
    return change;
}

/// A trimmed mean leaves out slow steps; those that come in every run cost time all the same.
StepTimeChange compareTypicalAndAll(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now,
                                    const StepTimeOptions& options) {
    StepTimeChange typical = compareBy(kTrimmedMean, base, now, options), all = compareBy(kMean, base, now, options);
    const bool tellOther = std::abs(std::log(*all.ratio / *typical.ratio)) >=
                           std::log1p(options.threshold);  // else both tell the same, but for chance
    const double slowSteps = *all.ratio > 1 ? *all.newNs / *typical.newNs : *all.baseNs / *typical.baseNs;
    const bool haveSlowSteps =
        slowSteps >=
        1 + options.threshold;  // else it is fast ones of the other side: a first step weighs more among few
    if (!tellOther || !haveSlowSteps || !all.isClaim() || all.verdict == typical.verdict) {
        typical.meanRatio = all.ratio;
        return typical;
    }
    all.byRareSteps = true;
    return all;
}

}  // namespace

double resolutionOf(const StepTimeOptions& options) {
    return std::max(options.resolution, 2 * options.threshold);
}

double foundShare(const DifferenceNoise& noise, const StepTimeOptions& options) {
    const double size = std::log1p(resolutionOf(options)) / noise.error;  // in standard errors
    const double t = facts::studentTwoSided(options.confidence, noise.degrees);
    const double beyondInterval =
        (size - t * (1 - 1 / (4 * noise.degrees))) / std::sqrt(1 + t * t / (2 * noise.degrees));
    const double beyondThreshold = size - std::log1p(options.threshold) / noise.error;
    return normalBelow(std::min(beyondInterval, beyondThreshold));
}

void setTypicalSteps(const std::string& estimator, std::vector<ComparedRun>& runs) {
    for (ComparedRun& run : runs) run.stepNs = locate(run.stepsNs, estimatorOf(estimator)).value;
}

StepTimeChange compareStepTimes(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now,
                                const StepTimeOptions& options) {
    StepTimeChange kinds;
    const bool baseHasKinds = findAllModes(base, kinds), newHasKinds = findAllModes(now, kinds);
    StepTimeChange change = baseHasKinds || newHasKinds || !allAlike(base, now)
                                ? compareBy(kMean, base, now, options)
                                : compareTypicalAndAll(base, now, options);
    change.modes = std::move(kinds.modes);
    return change;
}

}  // namespace rankscope::compare
