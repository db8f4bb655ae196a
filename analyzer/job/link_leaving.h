// SPDX-License-Identifier: Apache-2.0
// Who leaves a slow communicator's collectives last. In a ring the slowest edge is busy to the end: its sender and its
// receiver leave last, and each member behind leaves one chunk earlier. Of a slow rank both edges are slow, so it
// leaves last between its two neighbours.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/facts/trace_facts.h"
#include "analyzer/job/link_suspects.h"

namespace rankscope::job {

struct LeavingThresholds {
    static constexpr double kVisibleNs =
        5'000;  // device clocks of one host agree to about a microsecond, kernels' ends are recorded to that
    static constexpr double kClockBounds = 2;  // between hosts either clock may be off by the bound
    static constexpr double kPersistent =
        0.75;  // of the large collectives that agree on who is last: a disturbed one in four is let pass
};

/// The rank, pair or node that the slow probe's last members single out; nothing when all end together, the clock hides
/// it, or it changes.
std::optional<LinkSuspect> lastToLeave(const Analysis& analysis, const LinkProbe& probe);

/// How many times slower than the others, at least, the edge is that the communicator's ring waits for; nothing where
/// lastToLeave() names nobody. An edge slower by d of its time lets the members behind it leave d of a chunk's time
/// earlier. A chunk is a member's part of the message, in each channel at most half of NCCL's buffer; where the
/// channels are not known it is taken as the whole part, which errs to the low side. `most`: d is believed up to this.
std::optional<double> slowestEdge(const Analysis& analysis, const facts::Communicator& communicator, double most);

}  // namespace rankscope::job
