// SPDX-License-Identifier: Apache-2.0
// Transfers between PCIe cards take longer while these compute: what a change brings beside compute, or away from it,
// takes another time than it was recorded with.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::edits {

class BesideCompute {
  public:
    /// Reads how much of each transfer runs beside compute, and what that makes of it, of `graph` as it stands.
    BesideCompute(const TaskGraph& graph, const Analysis& analysis);

    /// What compute beside it costs a collective of the graph, ns: without, it would take so much less.
    double lostNs(size_t exchange, Outlook outlook) const;

    /// Gives the transfers of `changed` the times that they have in its own order. It is the graph that was read, with
    /// a changed structure: its exchanges are those of that one, of which some are gone, and behind them new ones with
    /// times as of transfers alone.
    void reprice(TaskGraph& changed, EditEffect& effect) const;

  private:
    /// What compute makes of a communicator's transfers.
    struct Slowing {
        facts::Estimate times{1, 1, 1};  // as long as alone do those take that run beside compute from end to end
        bool shown = false;              // by this job's own collectives
    };
    struct Recorded {
        int64_t communicator = 0;
        int64_t longestNs = 0;  // of its members
        int64_t besideNs = 0;   // of that beside compute, of the member with most
    };
    double lossOf(int64_t communicator, Outlook outlook) const;
    bool moved(size_t exchange, int64_t besideNs) const;
    void tell(const std::set<int64_t>& communicators, EditEffect& effect) const;

    std::map<int64_t, Slowing> m_slowings;  // by communicator: of those that compute slows
    std::vector<Recorded> m_exchanges;      // as in the graph; empty: compute slows none
};

}  // namespace rankscope::edits
