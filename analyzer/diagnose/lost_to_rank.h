// SPDX-License-Identifier: Apache-2.0
// What the others lose to a rank that comes late, by calls alone. How long they wait for it is more than that: a rank
// that was 5 ms late once and stays so is waited for 5 ms at each collective of the step, beside compute of theirs that
// nobody sees. What is lost is what its lateness grows by, from one collective to the next one; where the ranks stand
// still in between (calls_together.h) all begin anew, and the next lateness is lost as a whole. While the peers are so
// far ahead that nobody knows how far, the late rank is taken to lose what it loses in the rest of the run, per time.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

struct LostToRank {
    std::vector<double> perStepNs;  // by analysed step; 0 before the first one
    double share = 0;               // of the rank's time between collectives
    double seen = 0;                // of that time, in which it was seen; in the rest it is taken to be as much
};

/// Nothing where the rank's collectives, or those of its peers, do not tell. `rank` and `peers`: indices into
/// analysis.ranks; groups with other members count for nothing. `firstStep`: index of the analysed step from which on
/// it is looked at.
std::optional<LostToRank> lostToRank(const job::Analysis& analysis, size_t rank, const std::vector<size_t>& peers,
                                     size_t firstStep = 0);

}  // namespace rankscope::diagnose
