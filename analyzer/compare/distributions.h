// SPDX-License-Identifier: Apache-2.0
// Quantiles that intervals and smallest visible changes are made of. Student's t is in analyzer/facts/statistics.h.
#pragma once

#include <cstddef>
#include <vector>

namespace rankscope::compare {

/// The value that a chi-squared variable with `degrees` (> 0) degrees of freedom stays below with probability `p`
/// (0 < p < 1). By bisection of the regularized incomplete gamma function, as its power series (Abramowitz and Stegun
/// 6.5.29).
double chiSquaredQuantile(double p, double degrees);

/// Probability that a standard normal variable stays below `x`.
double normalBelow(double x);

/// Probability that the ratio of two independent estimates of one variance, with these degrees of freedom, exceeds
/// `ratio` (>= 0): the upper tail of the F distribution (Abramowitz and Stegun 26.6.2).
double varianceRatioOutside(double ratio, double degreesAbove, double degreesBelow);

/// Two-sided p value of the exact Mann-Whitney test: the share of all ways to deal the values to two sides of these
/// sizes whose rank sum is as far from its mean as this one's. Ties share their ranks. O(n^3 m) for n values, m of them
/// on the smaller side; with more than kMostExact values the normal approximation (variance of a sum drawn without
/// replacement, ties included; continuity corrected), O(n^2). 1 where a side is empty.
inline constexpr std::size_t kMostExact = 60;
double rankTestP(const std::vector<double>& a, const std::vector<double>& b);

/// The smallest p value that the test can give for sides of these sizes: 2 / (n + m over n).
double smallestRankTestP(std::size_t a, std::size_t b);

}  // namespace rankscope::compare
