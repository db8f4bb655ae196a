// SPDX-License-Identifier: Apache-2.0
// A job of two ranks whose steps can be played by hand.
#pragma once

#include "analyzer/edits/what_if.h"
#include "analyzer/job/analysis.h"

namespace rankscope::test {

/// Two ranks on one node, three steps, all analysed. In each step the host of a rank, 10 ns after it has begun,
///   - for each of `reductions`: launches a kernel (5 ns of own work, 2 ns in the call), calls a collective on the same
///     stream (the same); with `readBackNs` >= 0 it first waits for the kernel and then works that long;
///   - waits for the device.
/// Work begins 6 ns after its call has. Kernels take 100 ns on rank 0 and 150 ns on rank 1, collectives 30 ns beyond
/// waiting.
struct SmallJob {
    int reductions = 1;
    int readBackNs = -1;
    int64_t extraNs = 0;          // of rank 1's kernels in step 1
    bool differentGrids = false;  // the ranks' kernels have the same name, but another shape

    static constexpr int64_t kCommunicator = 7;
    static constexpr int32_t kKernelName = 1, kWaitName = 2, kLaunchName = 3;

    /// With an undisturbed step of 10 + 1 + 150 + 30 + 10 = 201 ns: rank 1's kernel begins 11 ns after the step, and
    /// the next one 10 ns after the collective.
    job::Analysis analysis() const;
};

/// With a third rank that the two stand for in the replay: it has no tasks, and its kernels take so long in a step.
job::Analysis withRankLeftOut(job::Analysis analysis, int64_t kernelNs);

/// Mean step after these changes.
double stepAfter(const job::Analysis& analysis, const std::vector<std::string>& changes);

}  // namespace rankscope::test
