// SPDX-License-Identifier: Apache-2.0
// Robust statistics of small samples. An empty sample gives 0.
#pragma once

#include <vector>

namespace rankscope::facts {

double median(std::vector<double> values);

/// Standard error of the median, from the median absolute deviation (1.2533 x 1.4826 x MAD / sqrt(n), right for normal
/// noise).
double medianError(const std::vector<double>& values);

/// The value that the share `q` of the sample (0 to 1) is not above, interpolated.
double quantile(std::vector<double> values, double q);

/// Half width of an interval that holds most of the sample: half the distance of the quartiles.
double quartileHalfWidth(std::vector<double> values);

}  // namespace rankscope::facts
