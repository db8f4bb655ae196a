// SPDX-License-Identifier: Apache-2.0
// Quantiles that intervals and smallest visible changes are made of. Student's t is in analyzer/facts/student_t.h.
#pragma once

namespace rankscope::compare {

/// The value that a standard normal variable stays below with probability `p` (0 < p < 1). By bisection of erfc.
double normalQuantile(double p);

/// The same for a chi-squared variable with `degrees` (> 0) degrees of freedom. By bisection of the regularized
/// incomplete gamma function, as its power series (Abramowitz and Stegun 6.5.29).
double chiSquaredQuantile(double p, double degrees);

/// Probability that the ratio of two independent estimates of one variance, with these degrees of freedom, exceeds
/// `ratio` (>= 0): the upper tail of the F distribution (Abramowitz and Stegun 26.6.2).
double varianceRatioOutside(double ratio, double degreesAbove, double degreesBelow);

}  // namespace rankscope::compare
