// SPDX-License-Identifier: Apache-2.0
// Measures how much slower compute kernels progress while NCCL kernels run beside them: the same kernels (name, grid,
// block) beside communication and alone.
#pragma once

#include <vector>

#include "analyzer/facts/intervals.h"
#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

struct Contention {
    double lostShare = 0;  // of the time beside communication, lost to it: 1 - 1 / slowdown; median over kernels of a
                           // key, mean over keys by that time
    double lostShareError = 0;                   // its standard error
    int samples = 0;                             // kernels beside communication that have equals alone
    KernelKey key;                               // the one that loses most time
    double keyAloneNs = 0;                       // its median duration alone
    double keyBesideNs = 0;                      // and beside communication
    std::vector<std::pair<int, double>> lostNs;  // by analysed step: time lost, summed over kernels

    double slowdown() const { return lostShare < 1 ? 1 / (1 - lostShare) : 0; }

    // A kernel is a sample from this share of its time beside communication on: under that its noise says more.
    static constexpr double kBesideShare = 0.1;
    static constexpr double kAloneSpread = 0.15;  // of the median alone, half the distance of the quartiles: beyond,
                                                  // one name and shape stand for different work
    static constexpr double kAloneRange = 1.5;  // p90 / p10 alone: beyond, too. Attention over documents, sparse rows,
                                                // tiles of another depth have one name and grid
    static constexpr int kFewestAlone = 5;  // under that p90 and p10 are the longest and the shortest, and say little
    static constexpr double kShortestNs = 20e3;  // alone: shorter kernels are bound by latencies, and gain microseconds
                                                 // beside any busy device, whatever NCCL holds
    static constexpr int kFewest = 3;            // kernels of a key beside communication
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(Contention& value, const Visit& visit) {
    auto& [lostShare, lostShareError, samples, key, keyAloneNs, keyBesideNs, lostNs] = value;
    visit(lostShare, lostShareError, samples, key, keyAloneNs, keyBesideNs, lostNs);
}

/// `communication` covers all NCCL kernels with their waits: they hold their multiprocessors while they wait, too.
Contention measureContention(const std::vector<ComputeTask>& compute, const CoveredLength& communication,
                             const std::vector<StepWindow>& steps);

}  // namespace rankscope::facts
