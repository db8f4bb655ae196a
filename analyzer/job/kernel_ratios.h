// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "analyzer/facts/rank_events.h"

namespace rankscope::job {

struct Analysis;

/// How long a rank's kernels take against the same kernels (name and launch shape) on the other ranks.
struct KernelRatio {
    std::vector<double> perStep;  // one per analysed step; 0 where nothing could be compared
    size_t firstStep = 0;         // index of the first one that counts; those before it are 0
    double ratio = 0;             // median over steps; 0 unknown
    double error = 0;             // standard error of that median
    double comparedShare = 0;     // share of its compute time that was compared
    double pace = 0;              // median over its kernels (name and launch shape) of their own ratios; 0 unknown
    double slowKernels =
        0;  // share of these kernels that have a good part of `ratio`, by number and by time: the smaller of the two
    std::set<facts::KernelKey> slow;  // those: nothing but their work sets them apart when they are few
    facts::KernelKey slowestKey;      // the kernel that loses most time
    double slowestRatio = 0;
};

/// A kernel is among the slow ones of its rank from this share of the rank's excess on: kernels bound by memory, launch
/// or arithmetic lose differently to a lower clock.
inline constexpr double kPartOfSlowness = 0.25;

/// One per analysis.ranks. A kernel's duration in a step is its median; a peer value is the median over the other
/// ranks. Detectors read the result, analysis.kernelRatios.
std::vector<KernelRatio> compareKernels(const Analysis& analysis);

/// The same of the steps from analysis.steps[firstStep] on.
std::vector<KernelRatio> compareKernelsSince(const Analysis& analysis, size_t firstStep);

/// As compareKernelsSince(), with only ranks of other hosts as peers.
std::vector<KernelRatio> compareKernelsBetweenHosts(const Analysis& analysis, size_t firstStep = 0);

}  // namespace rankscope::job
