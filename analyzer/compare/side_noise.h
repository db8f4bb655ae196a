// SPDX-License-Identifier: Apache-2.0
// How uncertain the difference of two sides of runs is: what runs of a side differ by, and never less than what their
// own steps make them differ by.
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/run_statistics.h"

namespace rankscope::compare {

inline constexpr double kNoiseFloor = 0.001;  // of the step: no machine repeats a run better than that
inline constexpr size_t kFewestForWelch = 5;  // runs on each side

/// A run's steps.
struct StepSample {
    std::string run;
    std::vector<double> stepsNs;
    int stepsPerSample =
        1;  // a mean over so many has no outliers left to trim: it compares with the mean of the others
};

/// The runs of one side, as logarithms of their typical steps.
struct Side {
    std::vector<double> logs;
    double runs = 0;  // as many as `logs` has
    double mean = 0;
    double variance = 0;  // between runs; 0 for one run
    double error2 = 0;    // of a run's typical step, from the steps: mean over runs
    size_t steps = 0;     // of all runs

    double degrees() const { return runs - 1; }
};

struct TwoSides {
    Side base, now;
};

/// Every run has one step at least. Runs too short to tell what their steps differ by (one step tells nothing) have the
/// error that the steps of all runs give them.
TwoSides sidesOf(const std::vector<StepSample>& base, const std::vector<StepSample>& now, StepEstimator estimator);

/// In the unit of the sides' means: shares of the step for sidesOf().
struct DifferenceNoise {
    double error = 0;        // standard error of the difference of the means
    double degrees = 0;      // of freedom; 0: not known
    double betweenRuns = 0;  // standard deviation of runs of a side
};

/// The variance of runs is pooled over both sides, floored by their steps' error and by `floor`. With kFewestForWelch
/// runs a side each has its own (Welch). With fewer the error is the larger of both ways: pooling lends the quiet of
/// many runs to the few of the other side, and few that agree by chance are no proof of quiet. Where the variances
/// differ by more than chance (F test, 5 %) and their own count, the degrees of freedom are Welch's.
DifferenceNoise noiseOf(const Side& base, const Side& now, double floor = kNoiseFloor);

/// The same sides with `more` runs on each, and noise between runs that is `scale` times the variance estimated.
TwoSides withMoreRuns(const TwoSides& sides, int more, double scale);

}  // namespace rankscope::compare
