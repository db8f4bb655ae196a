// SPDX-License-Identifier: Apache-2.0
// What a transfer of another size would take, by the times of the communicator's own collectives.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "analyzer/costs/collective_price.h"
#include "analyzer/job/analysis.h"
#include "analyzer/replay/task_graph.h"

namespace rankscope::edits {

class TransferPrices {
  public:
    /// Times are those of `graph` as it stands, so that earlier edits count.
    TransferPrices(const replay::TaskGraph& graph, const job::Analysis& analysis);

    /// Of a collective of `bytes` (as Exchange::bytes), of the member that takes longest. See CollectivePrice::ns.
    std::optional<facts::Estimate> ns(int64_t communicator, store::Op op, double bytes) const;

    /// Standard deviation of a transfer from what such a one takes, as a share of it.
    double scatter(int64_t communicator, store::Op op) const;

    /// The transfer of the member that takes longest: with a slow edge the others may leave a ring earlier.
    static double longestNs(const replay::TaskGraph& graph, const replay::Exchange& exchange);

  private:
    std::map<std::pair<int64_t, store::Op>, costs::CollectivePrice> m_prices;
    std::map<std::pair<int64_t, store::Op>, double> m_scatter;
};

}  // namespace rankscope::edits
