// SPDX-License-Identifier: Apache-2.0
// Who is to blame for the time that ranks lose to each other: waiting, and transfers that compute would have hidden had
// nobody come late, by the rank whose work was waited for in the end.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "analyzer/facts/rank_summary.h"
#include "analyzer/replay/replay.h"

namespace rankscope::job {

struct RecordedJob;

/// What one rank's lateness costs the others.
struct Delay {
    int rank = 0;
    double waitingNs = 0;      // exposed, per step, mean over the other recorded ranks
    double transferNs = 0;     // exposed only for that, likewise
    double share = 0;          // of all that the others lose to ranks
    std::vector<int> victims;  // who loses most of it, by rank
    double nsPerStep() const { return waitingNs + transferNs; }
};

struct Delays {
    std::vector<Delay> byRank;  // costliest first
    double lostNs =
        0;  // in all, per step, mean over ranks, of whatever rank; what nobody's rank is known of is not in `byRank`

    /// Of what ranks other than these lose, the share that is for these; nothing where they lose nothing.
    double shareFor(const std::vector<int>& ranks) const;
    /// (root, victim), sorted, and what the victim loses by the root, ns over the analysed steps.
    using Pairs = std::vector<std::pair<std::pair<int, int>, double>>;
    Pairs pairs;
    /// Those of one root.
    std::span<const Pairs::value_type> lostTo(int root) const;
    std::vector<std::pair<int, double>> lostBy;  // victim: all it loses, ns over the analysed steps, sorted
};

/// The root of a wait is where the critical path of the replay ran meanwhile: whoever came last may have been waiting
/// for another. Without a replay it is whoever came last. So many
/// `threads` look at parts of it.
Delays delaysOf(const RecordedJob& job, const replay::ReplayModel& replay, unsigned threads);

}  // namespace rankscope::job
