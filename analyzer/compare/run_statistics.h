// SPDX-License-Identifier: Apache-2.0
// What one run's steps say about its step time, and how sure. A run with outliers has a typical step all the same; one
// whose steps are of two kinds has not: its median jumps from one kind to the other when their shares change a little,
// so there the mean counts, as it does for the tokens a day.
// How uncertain the difference of two sides of runs is: what runs of a side differ by, and never less than what their
// own steps make them differ by.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

/// Steps of two kinds.
struct StepModes {
    double low = 0, high = 0;  // means of the two
    double highShare = 0;      // of the steps
};

/// Two kinds when the best split into a lower and an upper part leaves both with kFewestOfAKind steps (of eight or
/// more) and more than kRareShare of all, and their means lie kApart standard deviations (of the values inside the
/// parts) and kWorthIt of the mean apart. O(n log n).
std::optional<StepModes> findModes(std::vector<double> steps);

enum class StepEstimator { trimmedMean, mean };

struct RunLocation {
    double value = 0;     // typical step
    double error = 0;     // its standard error from the steps of the run alone, serial correlation included; 0 for less
                          // than two steps
    double variance = 0;  // of the steps, outliers winsorised; 0 for less than two steps
    double kept = 1;      // share of the steps that the mean is of
};

/// The trimmed mean leaves out kTrimmed of the steps at either end, one at least when there are five or more. Its error
/// is that of Tukey and McLaughlin (winsorised variance, Sankhya A 25, 1963); where neighbouring steps are alike the
/// error is that of means over batches of sqrt(n) steps.
RunLocation locate(const std::vector<double>& steps, StepEstimator estimator);

// One slow step in fifty is left out, as is one in ten of a run of ten; more of them are a kind of their own.
inline constexpr double kTrimmed = 0.05;
inline constexpr double kRareShare = 0.05;
inline constexpr int kFewestOfAKind = 2;  // steps of a kind; one alone is an outlier
// One in a hundred normal samples of 10 steps has it, of 20 steps the highest of thousands is 5.7; a mistake costs no
// more than the mean in place of the trimmed mean.
inline constexpr double kApart = 6;
inline constexpr double kWorthIt = 0.02;  // kinds closer than that do not move a median by what matters

inline constexpr double kNoiseFloor = 0.001;  // of the step: no machine repeats a run better than that
inline constexpr size_t kFewestForWelch = 5;  // runs on each side
// A side with so many times the degrees of freedom of the other, 12 beside three runs, knows the noise of both, unless
// the other is noisier: the estimate of three runs alone is above the noise in one comparison of three, and to take the
// larger one costs 4 of 100 regressions of 5 % where runs differ by 2 %. With fewer the noise is hardly known.
inline constexpr double kKnowsTheNoise = 6;
// So rarely do as noisy runs look noisier. At 5 % it costs another 3 of 100 such regressions; here the few may be twice
// as noisy and are blamed no more often (drawn: 3.8 in 100) than by the larger of both estimates (4.2).
inline constexpr double kNoisierByChance = 0.01;

/// The runs of one side: a number each, the logarithm of its typical step or a metric.
struct Side {
    std::vector<double> logs;
    double runs = 0;  // as many as `logs` has
    double mean = 0;
    double variance = 0;      // between runs; 0 for one run
    double error2 = 0;        // of a run's typical step, from the steps: mean over runs
    size_t steps = 0;         // of all runs
    double otherDegrees = 0;  // of `variance` that other runs than these tell

    double degrees() const { return runs - 1 + otherDegrees; }
};

/// A side of these numbers: their mean and variance, and as many runs.
Side sideOf(std::vector<double> numbers);

struct TwoSides {
    Side base, now;
};

/// Every run has one step at least. Runs too short to tell what their steps differ by (one step tells nothing) have the
/// error that the steps of all runs give them.
TwoSides sidesOf(const std::vector<ComparedRun>& base, const std::vector<ComparedRun>& now, StepEstimator estimator);

/// The side as if its noise were known from these runs as well, which are not of it.
Side withEarlierNoise(Side side, const EarlierNoise& earlier);

/// In the unit of the sides' means: shares of the step for sidesOf().
struct DifferenceNoise {
    double error = 0;        // standard error of the difference of the means
    double degrees = 0;      // of freedom; 0: not known
    double betweenRuns = 0;  // standard deviation of runs of a side
};

/// The variance of runs is pooled over both sides, floored by their steps' error and by `floor`. Where one side knows
/// the noise (kKnowsTheNoise) that is all, unless the few runs of the other are noisier by more than chance (F test,
/// kNoisierByChance): then each has its own (Welch). Else, with kFewestForWelch runs a side each has its own. With
/// fewer the error is the larger of both ways: pooling lends the quiet of some runs to the few of the other side, and
/// few that agree by chance are no proof of quiet. Where the variances differ by more than chance (F test, 5 %) and
/// their own count, the degrees of freedom are Welch's.
DifferenceNoise noiseOf(const Side& base, const Side& now, double floor = kNoiseFloor);

/// Tells whether two estimates of a variance differ, whichever is larger, by more than they do in 5 % of comparisons of
/// one variance (F test).
bool differByMoreThanChance(double first, double firstDegrees, double second, double secondDegrees);

/// Returns the same sides with `more` runs on each, and noise between runs that is `scale` times the variance
/// estimated.
TwoSides withMoreRuns(const TwoSides& sides, int more, double scale);

}  // namespace rankscope::compare
