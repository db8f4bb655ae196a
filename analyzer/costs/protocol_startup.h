// SPDX-License-Identifier: Apache-2.0
// What a hop of LL and LL128 costs on this hardware, where collectives of the trace tell. Their shares of a Simple hop
// lie in ranges (nccl_formulas.h); a place in a range is 0 at its low end and 1 at its high end.
#pragma once

#include <map>
#include <optional>

#include "analyzer/costs/cost_evidence.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::costs {

class ProtocolStartup {
  public:
    ProtocolStartup() = default;
    /// Reads the places of choices that ran where the configured links tell the start-up of Simple.
    ProtocolStartup(const LinkPeaks& peaks, const facts::TraceFacts& facts, const CostEvidence& evidence);

    /// Of a protocol on groups of a shape: known within half of the range from the same protocol with another
    /// algorithm; within what NCCL's own table has of LL against LL128 from the other one; else anywhere.
    facts::Estimate of(GroupShape shape, store::Protocol protocol) const;

  private:
    /// Where the place lies that a measured time speaks for.
    struct Known {
        double place = 0.5;
        double doubt = 1;  // width of what is consistent with the time
    };
    const Known* known(GroupShape shape, store::Protocol protocol) const;

    std::map<std::pair<GroupShape, store::Protocol>, Known> m_known;  // by the time that tells most
};

}  // namespace rankscope::costs
