// SPDX-License-Identifier: Apache-2.0
// The step times of two sides compared: what may be said of their ratio, and how small a change would have been seen.
//
// The run is the unit. Steps of one run share its place, its temperature, its network: a hundred steps of one run say a
// lot about that run and nothing about the next one. So each run counts as one number, the logarithm of its typical
// step (run_statistics.h), and the noise is what runs of one side differ by:
//
//   ratio      exp(mean of the new runs - mean of the base runs)
//   noise s    standard deviation of runs of a side, pooled over both sides or of each its own, and never less than
//              what their steps make it (run_statistics.h)
//   interval   difference +- t(p, degrees) s sqrt(1/n + 1/m), degrees n + m - 2, p = (1 + confidence) / 2
//   smallest visible change: max(half interval, log(1 + threshold)) + z(0.9) s' sqrt(1/n + 1/m), where
//              s' = s sqrt(degrees / chi2(0.01, degrees)) is the upper bound of the noise. With s itself it would be
//              found in nine of ten comparisons on average, but not in those whose s is small by chance and that
//              therefore promise most. And s' is at least kUsualNoise sqrt(4 / degrees): that a few runs agree better
//              may be chance.
//
//   found      share of regressions of a size that is claimed: d = log(1 + size) / (s sqrt(1/n + 1/m)) standard errors
//              is beyond t in normal((d - t (1 - 1/(4 degrees))) / sqrt(1 + t^2 / (2 degrees))) of comparisons (the
//              noncentral t distribution, Abramowitz and Stegun 26.7.10). It takes s as it is: no bound, but what to
//              expect of many comparisons.
//
// A typical step leaves out rare slow ones. Where they come in so many runs of one side that the mean of all steps
// tells a change surely, and typical steps do not tell the same, the mean counts: both tests together claim a change
// that is none in at most 5 % of comparisons, 2.5 % each way and test.
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_statistics.h"

namespace rankscope::compare {

struct StepTimeOptions {
    double threshold = 0.01;   // share: a smaller change is none. Below, builds of the same source differ
    double resolution = 0.05;  // share: 'no change' is said when a change of that size would have been seen; at least
                               // twice the threshold
    double confidence = kConfidence;  // of the interval, and so of a claim
    EarlierNoise earlier;             // beside what the runs of both sides tell
};

// Of the step: runs of one job on one cluster differ by one to two percent (clocks, placement, neighbours).
inline constexpr double kUsualNoise = 0.015;
inline constexpr double kNoiseBound = 0.99;   // confidence of the upper bound of the noise
inline constexpr size_t kFewestForRanks = 4;  // runs on each side: with three the exact test cannot go below p = 0.1
// Share of noise estimates that are further below the noise than what `more runs` allows for.
inline constexpr double kPlannedNoise = 0.3;
inline constexpr int kFewestMoreRuns = 2;  // to one run: three on each side are the least that tells noise from change
inline constexpr int kMostMoreRuns = 50;   // more are not worth asking for

/// The least change that 'no change' promises to see, as a share.
double resolutionOf(const StepTimeOptions& options);

/// The share of regressions of the size that 'no change' promises to see which are claimed (see above). `noise` is of
/// the difference of two sides; its degrees are above 0.
double foundShare(const DifferenceNoise& noise, const StepTimeOptions& options);

/// Every run has one step at least. Steps of two kinds in half of the runs of a side, or more, are compared by means.
/// Fills everything of StepTimeChange but `reason`.
StepTimeChange compareStepTimes(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now,
                                const StepTimeOptions& options);

/// Sets the typical step of each run, by the estimator that fits all of them.
void setTypicalSteps(const std::string& estimator, std::vector<ComparedRun>& runs);

}  // namespace rankscope::compare
