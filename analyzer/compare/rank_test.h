// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace rankscope::compare {

/// Two-sided p value of the exact Mann-Whitney test: the share of all ways to deal the values to two sides of these
/// sizes whose rank sum is as far from its mean as this one's. Ties share their ranks. O(n^3 m) for n values, m of them
/// on the smaller side; with more than kMostExact values the normal approximation (variance of a sum drawn without
/// replacement, ties included; continuity corrected), O(n^2). 1 where a side is empty.
inline constexpr std::size_t kMostExact = 60;
double rankTestP(const std::vector<double>& a, const std::vector<double>& b);

/// The smallest p value that the test can give for sides of these sizes: 2 / (n + m over n).
double smallestRankTestP(std::size_t a, std::size_t b);

}  // namespace rankscope::compare
