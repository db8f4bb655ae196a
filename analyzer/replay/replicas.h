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
/// all ranks are taken away, of which a rank has one each; all call the same operations as often on groups of the same
/// size. Of several sizes the one is taken whose communicators are called least: replicas meet now and then, and
/// tensor-parallel ranks in each layer. Only analysed steps count, and collectives of which all members are known.
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

/// Leaves replicas that come to `share` of the ranks (0 to 1), no fewer than kFewestReplicas, and as many more as it
/// takes until those left out are late by kMostLateByOthers at most. Beyond `mostShare` nobody is left out.
///
/// They are those that come latest in the mean, those that come last most often, and some from the latest to the
/// earliest: whoever the others wait for is replayed, and has peers to be compared with.
ReplayedReplicas chooseReplicas(const facts::TraceFacts& facts, double share, double mostShare = 1);

/// Two of each order: the one that stands out, and one more like it, which a repair of the first leaves. A judgement:
/// with six, savings of a pipeline of 256 ranks and of 13 jobs of the core suite were off by 0.03 % of the step at
/// most; of real recordings none is known that has so many replicas.
inline constexpr size_t kFewestReplicas = 6;
/// Share of a step, and what a saving may be off for it: a sixth of the 3 % from which a cause is a finding.
inline constexpr double kMostLateByOthers = 0.005;

}  // namespace rankscope::replay
