// SPDX-License-Identifier: Apache-2.0
// Who waited for whom when a job ended: ranks as nodes, and from each rank that waits an edge to each that it waits
// for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/facts/job_end.h"

namespace rankscope::diagnose {

/// A call that cannot end before `on` does something.
struct Wait {
    enum class Why : uint8_t {
        missing,  ///< `on` has not called it
        behind,   ///< it has, behind another call of its own on the same stream that waits
        // Of a flight recorder, which tells what ended and, if asked to, what began:
        unbegun,      ///< it has, and nothing known holds it up, but its device has not begun what the waiter's has
        behindFirst,  ///< it has, behind another of its calls that did not end, on whatever stream
        stuck,        ///< it has; for both it is the first call that did not end
    };
    int waiter = 0;
    int on = 0;
    facts::EndedCall call;  // the waiter's
    Why why = Why::missing;

    /// Streams and calls do not prove it: what joins two streams on the device, a recorder does not tell.
    bool isInferred() const { return why == Why::behindFirst || why == Why::stuck; }
};

class WaitingRanks {
  public:
    explicit WaitingRanks(const facts::JobEnd& end);

    /// The first wait of the rank for each other rank; empty: it waits for nobody.
    const std::vector<Wait>& of(int rank) const;
    bool waits(int rank) const { return !of(rank).empty(); }
    /// A collective that the rank's device did not end though others' did, so that all had come to it; nullptr: there
    /// is none. Only where what ended is told (facts::JobEnd::isRecorder).
    const facts::EndedCall* standsIn(int rank) const;

    /// Ranks that wait for each other, or one that waits for nobody, to which all waiting of some others leads; by
    /// their first rank.
    std::vector<std::vector<int>> roots() const;
    /// All ranks whose waiting leads to one of `root`, without these, by rank.
    std::vector<int> behind(const std::vector<int>& root) const;
    /// The waits by which `rank` waits for `root`, the fewest, from the rank on.
    std::vector<Wait> chain(int rank, const std::vector<int>& root) const;

  private:
    bool isHeldUpFor(const std::vector<int>& ranks) const;

    std::map<int, std::vector<Wait>> m_waits;
    std::map<int, facts::EndedCall> m_standing;
};

}  // namespace rankscope::diagnose
