// SPDX-License-Identifier: Apache-2.0
// Numbers of a comparison as people read them.
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

/// "3.2 % slower (2.8 % to 3.6 %)".
std::string changeText(const StepTimeChange& step);

/// A slow-down that would have been seen: "3.2 %", "more than twice".
std::string smallestVisibleText(double share);

/// How much runs differ, who told so, and what would have been seen, where the verdict does not say it; empty: nothing
/// tells. No full stop.
std::string noiseSentence(const StepTimeChange& step);

/// The verdict with its numbers, in one sentence: StepTimeChange::reason.
std::string verdictSentence(const StepTimeChange& step);

/// Over the causes: "Why"; of a change that is not claimed "Why, if it is more than noise".
std::string causesHeading(const Comparison& comparison);

/// What to know besides the verdict; a sentence each.
std::vector<std::string> stepNotes(const StepTimeChange& step);

/// A value of a metric with its unit: "12.3 ms", "45.6 %", "38.4 GB/s".
std::string metricText(double value, const std::string& unit);

/// How much it changed: "-12.6 points" of a share, "+5.2 %" of other numbers.
std::string metricChangeText(double base, double now, const std::string& unit);

}  // namespace rankscope::compare
