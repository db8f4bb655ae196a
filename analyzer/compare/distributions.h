// SPDX-License-Identifier: Apache-2.0
// Quantiles that intervals and smallest visible changes are made of. Student's t is in analyzer/recommend/student_t.h.
#pragma once

namespace rankscope::analyzer {

/// The value that a standard normal variable stays below with probability `p` (0 < p < 1). By bisection of erfc.
double normalQuantile(double p);

/// The same for a chi-squared variable with `degrees` (> 0) degrees of freedom. By bisection of the regularized incomplete gamma function, as its power
/// series (Abramowitz and Stegun 6.5.29).
double chiSquaredQuantile(double p, double degrees);

}  // namespace rankscope::analyzer
