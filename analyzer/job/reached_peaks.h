// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/job/analysis.h"

namespace rankscope::job {

struct ReachedPeakThresholds {
    // Start-up per hop of Simple that nothing undercuts: NVLink in NCCL's table (src/graph/tuning.cc of 2.28, hwLat).
    // Taken off a time, what is left is no less than its bytes'.
    static constexpr double kLeastAlphaNs = 3'400;
    // Between hosts the arrivals are known to the clock's bound: it must not make more of a time than this.
    static constexpr double kClockShare = 0.1;
    // Of a collective's time that a slow edge has its data on the network: with less it is not what the others wait
    // for.
    static constexpr double kBusyShare = 0.5;
    // A last chunk that takes this share of its time longer than the others' tells little of how much: such an edge is
    // "at least five times slower".
    static constexpr double kMostLead = 0.8;
};

/// Gives the classes of links whose peak nobody told the best that this job reached: lower bounds, start-up unknown
/// (0). Evidence, the best of
/// - undisturbed collectives and messages, medians of a size, with what algorithm and protocol leave of the link taken
///   out;
/// - of a collective that one edge holds up, how much faster the other edges are: between nodes by the proxies' time on
///   the network (network_edges.h), inside one by how much earlier their members leave (link_leaving.h).
void addReachedPeaks(Analysis& analysis);

}  // namespace rankscope::job
