// SPDX-License-Identifier: Apache-2.0
// What one run's steps say about its step time, and how sure. A run with outliers has a typical step all the same; one
// whose steps are of two kinds has not: its median jumps from one kind to the other when their shares change a little,
// so there the mean counts, as it does for the tokens a day.
#pragma once

#include <optional>
#include <vector>

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

inline constexpr double kTrimmed =
    0.05;  // one slow step in fifty is left out, as is one in ten of a run of ten; more of them are a kind of their own
inline constexpr double kRareShare = 0.05;
inline constexpr int kFewestOfAKind = 2;  // steps of a kind; one alone is an outlier
inline constexpr double kApart =
    6;  // one in a hundred normal samples of 10 steps has it, of 20 steps the highest of thousands is 5.7; a mistake
        // costs no more than the mean in place of the trimmed mean
inline constexpr double kWorthIt = 0.02;  // kinds closer than that do not move a median by what matters

}  // namespace rankscope::compare
