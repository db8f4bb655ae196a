// SPDX-License-Identifier: Apache-2.0
// What a collective takes on a link that is slower than was stated.
// NCCL prices the bandwidth of LL as min(half of the link's, what the SMs' polling reaches), that of LL128 alike
// (src/graph/tuning.cc: llMaxBw, perChMaxRingLL128Bw). The second is of the device: a link so slow that even the lowest
// such share of what was stated does not explain the time lies below it, so that the protocol reaches what its line
// format leaves of the link.
#pragma once

#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::costs {

/// Times the longest time the formulas allow. Healthy links reach 80 to 95 % of their peak, unseen sharing may take a
/// tenth: under two thirds the link is slow.
constexpr double kSlowLink = 1.5;

/// Longest time (ns) on `link` where nothing but the link holds the protocol. No longer than collectiveNs().high, and
/// the same for Simple.
double linkBoundNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice);

/// `link` as the measured time shows it: of less bandwidth where it is slow and bytes take most of the time. The
/// start-up is then as stated.
LinkModel seenLink(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs);

/// The part of `measuredNs` that the formulas explain on `link`, ns; the rest is of the link's own state and stays with
/// whatever choice.
double explainedNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs);

}  // namespace rankscope::costs
