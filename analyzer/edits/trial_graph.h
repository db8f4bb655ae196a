// SPDX-License-Identifier: Apache-2.0
// A graph that changes are tried on, by any thread, and that stays as it is. Where they are many, what they ask of it
// is read once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/costs/collective_price.h"
#include "analyzer/edits/beside_compute.h"
#include "analyzer/edits/gradient_curve.h"
#include "analyzer/edits/pipeline.h"
#include "analyzer/job/analysis.h"
#include "analyzer/replay/simulate.h"
#include "analyzer/replay/task_graph.h"

namespace rankscope::edits {

// What a transfer of another size would take, by the times of the communicator's own collectives.

class TransferPrices {
  public:
    /// Times are those of `graph` as it stands, so that earlier edits count, and as they would be without compute
    /// beside them: messages of one size may run beside it, and those of another alone.
    TransferPrices(const TaskGraph& graph, const Analysis& analysis, const BesideCompute& besideCompute);

    /// Of a collective of `bytes` (as Exchange::bytes), of the member that takes longest, without compute beside it.
    /// See CollectivePrice::ns.
    std::optional<facts::Estimate> ns(int64_t communicator, store::Op op, double bytes) const;

    /// Standard deviation of a transfer from what such a one takes, as a share of it.
    double scatter(int64_t communicator, store::Op op) const;

  private:
    std::map<std::pair<int64_t, store::Op>, costs::CollectivePrice> m_prices;  // by communicator and operation
    std::map<std::pair<int64_t, store::Op>, double> m_scatter;
};

/// Measured over priced transfer times of a round, both as without compute beside them: its noise, and what else was on
/// the network; by the member that takes longest, and each member's share of that: with a slow edge the others may
/// leave a ring earlier.
struct Strain {
    double factor = 1;
    std::vector<double> shares;  // by member
};

/// The gradients of a job as they are sent.
class GradientTraffic {
  public:
    /// Both must outlive it. Throws EditError where members of a reduction are missing.
    GradientTraffic(const TaskGraph& graph, const Analysis& analysis);

    const LaunchIndex& index() const { return m_index; }
    const TransferPrices& prices() const { return m_prices; }
    const BesideCompute& besideCompute() const { return m_besideCompute; }
    /// Gathers of ZeRO's parameters are the last ones.
    const std::vector<GradientRound>& rounds() const { return m_rounds; }
    const Strain& strain(size_t round) const { return m_strains[round]; }
    /// By member; none where nothing shows where its backward pass begins.
    const std::vector<std::optional<GradientCurve>>& curves(size_t round) const;
    /// By member; none where backward goes on whatever is summed.
    const std::vector<std::optional<BackwardWait>>& waits(size_t round) const;

  private:
    const TaskGraph& m_graph;
    LaunchIndex m_index;
    BesideCompute m_besideCompute;
    TransferPrices m_prices;
    std::vector<GradientRound> m_rounds;
    std::vector<Strain> m_strains;                                            // by round
    mutable std::mutex m_reading;                                             // of m_curves and m_waits
    mutable std::vector<std::vector<std::optional<GradientCurve>>> m_curves;  // by round; empty: not read yet
    mutable std::vector<std::vector<std::optional<BackwardWait>>> m_waits;    // the same
};

/// How often: of a graph that changes are tried on often, the pipeline is kept for the next one (what sums gradients
/// always is).
enum class Tried : uint8_t { once, often };

class TrialGraph {
  public:
    /// `from`: a graph that `graph` may be a copy of with other times; nullptr: none is known. All must outlive it.
    TrialGraph(const TaskGraph& graph, const Analysis& analysis, Tried tried = Tried::often,
               const TrialGraph* from = nullptr)
        : m_graph(graph), m_analysis(analysis), m_tried(tried), m_from(from) {}

    const TaskGraph& graph() const { return m_graph; }
    const Analysis& analysis() const { return m_analysis; }
    /// The schedule of graph(): the analysis' own where it has it, and as long as that lives; else it is played for
    /// each caller, and not kept here: it is 16 bytes a task, and few changes ask for it.
    [[nodiscard]] std::shared_ptr<const Schedule> schedule() const;
    /// Throws EditError where the job has none, as pipeline() does.
    const GradientTraffic& gradients() const;
    /// Which calls belong to a pass does not depend on how long they would take after a change: where only times differ
    /// from `from`, it is read there.
    [[nodiscard]] std::shared_ptr<const PipelineParts> pipeline() const;

  private:
    const TaskGraph& m_graph;
    const Analysis& m_analysis;
    Tried m_tried;
    const TrialGraph* m_from;
    mutable std::mutex m_reading;                             // of what follows
    mutable std::optional<GradientTraffic> m_gradients;       // none: not asked for yet
    mutable std::shared_ptr<const PipelineParts> m_pipeline;  // none: not kept
};

}  // namespace rankscope::edits
