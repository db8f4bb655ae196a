// SPDX-License-Identifier: Apache-2.0
// Computes statistics of small samples. An empty sample gives 0.
#pragma once

#include <vector>

namespace rankscope::facts {

/// Holds a value and how far it may be off. The unit is that of the variable's name.
struct Estimate {
    double low = 0;
    double expected = 0;
    double high = 0;

    /// Makes one with an error on either side.
    static Estimate around(double value, double error) { return {value - error, value, value + error}; }
    Estimate widened(double error) const { return {low - error, expected, high + error}; }
    Estimate operator+(const Estimate& other) const {
        return {low + other.low, expected + other.expected, high + other.high};
    }
    /// Scales by a factor that is not negative.
    Estimate operator*(double factor) const { return {low * factor, expected * factor, high * factor}; }
};

double mean(const std::vector<double>& values);
double median(std::vector<double> values);
/// The same of values in ascending order.
double medianOfSorted(const std::vector<double>& values);
/// The same of all but one of them, whose value is `left`.
double medianOfOthers(const std::vector<double>& sorted, double left);

/// Returns the standard deviation, from the median absolute deviation (1.4826 x MAD, right for normal noise), which a
/// few far values do not move; 0 for fewer than two.
double robustDeviation(const std::vector<double>& values);

/// Returns the standard error of the median: 1.2533 x robustDeviation() / sqrt(n).
double medianError(const std::vector<double>& values);

/// Returns the value that the share `q` of the sample (0 to 1) is not above, interpolated.
double quantile(std::vector<double> values, double q);

/// Returns the half width of an interval that holds most of the sample: half the distance of the quartiles.
double quartileHalfWidth(std::vector<double> values);

/// Returns the value that a Student t variable with `degrees` (> 0) degrees of freedom exceeds in absolute value with
/// probability 1 - `confidence` (0 < confidence < 1): 12.706 for 0.95 and 1. It bisects the distribution function, the
/// regularized incomplete beta function as a continued fraction (Abramowitz and Stegun 26.5.8 and 26.7.1).
double studentTwoSided(double confidence, double degrees);

/// Returns the probability that its absolute value exceeds `t` (>= 0): the two-sided p value.
double studentOutside(double t, double degrees);

/// Returns the regularized incomplete beta function I_x(a, b).
double regularizedBeta(double a, double b, double x);

}  // namespace rankscope::facts
