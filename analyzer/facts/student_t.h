// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::facts {

/// The value that a Student t variable with `degrees` (> 0) degrees of freedom exceeds in absolute value with
/// probability 1 - `confidence` (0 < confidence < 1): 12.706 for 0.95 and 1. By bisection of the distribution function,
/// the regularized incomplete beta function as a continued fraction (Abramowitz and Stegun 26.5.8 and 26.7.1).
double studentTwoSided(double confidence, double degrees);

/// Probability that its absolute value exceeds `t` (>= 0): the two-sided p value.
double studentOutside(double t, double degrees);

/// The regularized incomplete beta function I_x(a, b).
double regularizedBeta(double a, double b, double x);

}  // namespace rankscope::facts
