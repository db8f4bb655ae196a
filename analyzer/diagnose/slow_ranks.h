// SPDX-License-Identifier: Apache-2.0
// Ranks whose devices run the same kernels more slowly: what RS301 (one rank) and RS302 (all ranks of a host) share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/job/finding.h"
#include "analyzer/job/kernel_ratios.h"

namespace rankscope::diagnose {

// What RS301 and RS302 ask of a rank, step after step.
inline constexpr Threshold kSlowRatio{"ratio", 1.03, "x the peers' kernel time",
                                      "clocks of healthy devices of one model differ by 1 to 2 %"};
inline constexpr Threshold kSlowErrors{"errors", 3, "standard errors above 1",
                                       "noise of single kernels is no straggler"};
inline constexpr Threshold kSlowStepsShare{"steps share", 2.0 / 3, "of the steps",
                                           "rare slow steps are another diagnosis: transient slowdown"};
inline constexpr Threshold kComparedShare{"compared share", 0.5, "of its compute time",
                                          "with less in common there is nothing to compare with"};
inline constexpr Threshold kSlowKernels{"slow kernels", 0.5, "of its kernels, by number and by time",
                                        "a slow device slows most of them; more work only those that do it"};

/// The rank takes longer for kernels of the same name and launch shape, step after step: its device is slow, or some of
/// them do more work on it.
bool takesLonger(const job::KernelRatio& ratio);

/// takesLonger(), in most of its kernels: the device is slow.
bool isSlow(const job::KernelRatio& ratio);

/// "16.0 ms for rank 3": how long the kernel waits for its last rank, as the timeline tells it of the kernel; and how
/// much of it is exposed, where it is not all.
std::string waitText(const facts::CommTask& task);

/// Adds to the evidence which part of what the others lose to late ranks is for `ranks`; nothing where that is none.
/// `who`: what the sentence calls them.
void addLossForRanks(const job::Analysis& analysis, const std::vector<int>& ranks, const std::string& who,
                     job::Finding& finding);

/// Slow ranks that share a cause, as indices into analysis.ranks.
struct SlowGroup {
    std::vector<size_t> members;
    double ratio = 0;  // median over the members
    std::vector<int> ranks;
};
SlowGroup makeSlowGroup(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                        std::vector<size_t> members);

/// What a group costs the job.
struct SlowCost {
    std::vector<double> extraNs;           // by analysed step: compute that it would not need at its peers' pace; 0
                                           // before the first one that counts (KernelRatio::firstStep)
    std::map<int, double> waitByPeer;      // sums over the analysed steps, ns
    double waitedNs = 0, undecidedNs = 0;  // of the peers' exposed waiting: all, behind nobody the clocks can name
};
SlowCost costOfSlowness(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                        const SlowGroup& group);

/// Fills everything of a finding but id, cause and fix.
void describeSlowness(const job::Analysis& analysis, const std::vector<job::KernelRatio>& ratios,
                      const SlowGroup& group, const SlowCost& cost, job::Finding& finding);

}  // namespace rankscope::diagnose
