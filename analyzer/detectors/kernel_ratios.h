// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/timeline/rank_events.h"

namespace rankscope::analyzer {

struct Analysis;

/// How long a rank's kernels take against the same kernels (name and launch shape) on the other ranks.
struct KernelRatio {
    std::vector<double> perStep;  // one per analysed step; 0 where nothing could be compared
    double ratio = 0;             // median over steps; 0 unknown
    double error = 0;             // standard error of that median
    double comparedShare = 0;     // share of its compute time that was compared
    KernelKey slowestKey;         // the kernel that loses most time
    double slowestRatio = 0;
};

/// One per analysis.ranks. A kernel's duration in a step is its median; a peer value is the median over the other ranks. Detectors read the result, analysis.kernelRatios.
std::vector<KernelRatio> compareKernels(const Analysis& analysis);

/// The same, with only ranks of other hosts as peers.
std::vector<KernelRatio> compareKernelsBetweenHosts(const Analysis& analysis);

}  // namespace rankscope::analyzer
