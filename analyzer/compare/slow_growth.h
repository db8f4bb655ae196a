// SPDX-License-Identifier: Apache-2.0
// A step that grows a little with each change, of which no gate can see one alone. The last values of a level, three or
// more, lie on a line that rises from where the level was: a regression with a hinge (constant, then straight), by
// least squares, for each place of the hinge. The slope is told when it is sure for the place where it is surest, by
// Student's distribution at kSplitByChance. The slopes of neighbouring places are so alike that the choice among them
// costs little, a growth below the threshold does not count, and `noise` is as large as it may well be: of levels that
// never moved, drawn with 0.5, 1 and 2 % between runs, 0.3, 1.6 and 2.0 in 100 comparisons have one.
#pragma once

#include <optional>
#include <vector>

namespace rankscope::compare {

struct Growth {
    size_t values = 0;  // the last of them, which grow
    double total = 0;   // by so much in all: of logarithms where the values are
};

/// `weights`: each value is as sure as the mean of so many runs. `noise`: standard deviation of one run, above 0, known
/// with so many degrees of freedom. `least`: a smaller growth in all is none. O(values^2).
std::optional<Growth> findGrowth(const std::vector<double>& values, const std::vector<double>& weights, double noise,
                                 double degrees, double least);

}  // namespace rankscope::compare
