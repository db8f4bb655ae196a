// SPDX-License-Identifier: Apache-2.0
// What a transfer of another size would take: measured times of the communicator's own collectives, and between and beyond their sizes the shape of NCCL's cost.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "analyzer/detectors/analysis.h"
#include "analyzer/replay/task_graph.h"
#include "analyzer/timeline/nccl_formulas.h"

namespace rankscope::analyzer {

class TransferPrices {
  public:
    /// Samples are the transfers of `graph` as it stands, so that earlier edits count.
    TransferPrices(const TaskGraph& graph, const Analysis& analysis);

    /// Transfer time of a collective of `bytes` (as Exchange::bytes), ns. Between measured sizes and beyond them the time follows the cheapest of NCCL's algorithms and
    /// protocols on the configured links, in proportion to what the nearest sizes take; without configured links it follows the line through the measured sizes.
    /// nullopt: sizes too alike and no links.
    std::optional<double> timeNs(int64_t communicator, store::Op op, double bytes) const;

  private:
    std::optional<double> shapeNs(int64_t communicator, store::Op op, double bytes) const;

    const Analysis& m_analysis;
    std::map<std::pair<int64_t, store::Op>, std::map<double, double>> m_times;  // by bytes: median ns
};

/// Cheapest of NCCL's rings and trees, the middle of what the formulas of nccl_formulas.h allow, ns.
double cheapestNs(const LinkModel& link, store::Op op, int ranks, double bytes);

}  // namespace rankscope::analyzer
