// SPDX-License-Identifier: Apache-2.0
// Copies of a job inside the job: data-parallel replicas run the same program beside each other, and meet in
// collectives alone. A few of them show what all of them do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "analyzer/facts/trace_facts.h"

namespace rankscope::replay {

/// Ranks of one replica each, by rank, and the communicators by which they meet.
struct Replicas {
    std::vector<std::vector<int>> ranks;  // fewer than two: the job has none
    std::set<int64_t> shared;
};

/// Replicas are what is left connected, by messages and collectives, when the communicators of one size and those of
/// all ranks are taken away; each calls the same operations as often on groups of the same size. Of several sizes the
/// one that leaves most replicas is taken. Linear in the members of collectives.
Replicas findReplicas(const facts::TraceFacts& facts);

/// What is replayed of the replicas.
struct ReplayedReplicas {
    std::vector<int> leftOut;  // ranks of the others, sorted; empty: all are replayed
    int of = 0;                // replicas, replayed or not
    int replayed = 0;
    // By how much a collective that the replicas share began later than the last replayed one came: summed over a step,
    // mean over steps, ns. It is taken for a part of the transfer.
    double lateByOthersNs = 0;
};

/// Leaves as many replicas as come to `share` (of 1) of the ranks, and no fewer than kFewestReplicas. They are those
/// that come latest in the mean, and those that come last most often, by turns: whoever the others wait for is
/// replayed.
ReplayedReplicas chooseReplicas(const facts::TraceFacts& facts, double share);

/// With two, the one that stands out has a single peer to be compared with.
inline constexpr size_t kFewestReplicas = 4;

}  // namespace rankscope::replay
