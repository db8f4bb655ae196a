// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/trial_graph.h"

#include <algorithm>

#include "analyzer/edits/edit.h"

namespace rankscope::edits {
namespace {

Strain strainOf(const GradientRound& round, const replay::TaskGraph& graph, const TransferPrices& prices) {
    double longest = 0, priced = 0;
    std::vector<double> sums(round.members.size(), 0);
    for (size_t b = 0; b < round.bytes.size(); ++b) {
        longest += TransferPrices::longestNs(graph, graph.exchanges[round.exchanges[b]]);
        if (const auto price = prices.ns(round.communicator, round.op, round.bytes[b])) priced += price->expected;
        for (size_t m = 0; m < sums.size(); ++m)
            sums[m] += static_cast<double>(graph.durationNs[round.members[m].transfers[b]]);
    }
    Strain strain;
    if (priced > 0 && longest > 0) strain.factor = longest / priced;
    for (double sum : sums) strain.shares.push_back(longest > 0 ? sum / longest : 1);
    return strain;
}

}  // namespace

GradientTraffic::GradientTraffic(const replay::TaskGraph& graph, const job::Analysis& analysis)
    : m_graph(graph),
      m_index(graph),
      m_prices(graph, analysis),
      m_rounds(gradientRounds(graph, analysis, m_index)),
      m_curves(m_rounds.size()) {
    // Parameters of ZeRO are gathered bucket by bucket in the order in which they are updated: the plan of the
    // gradients comes first.
    std::stable_partition(m_rounds.begin(), m_rounds.end(),
                          [](const GradientRound& round) { return round.op != store::Op::allGather; });
    for (const GradientRound& round : m_rounds) m_strains.push_back(strainOf(round, graph, m_prices));
}

const std::vector<std::optional<GradientCurve>>& GradientTraffic::curves(size_t round) const {
    const std::lock_guard lock(m_reading);
    std::vector<std::optional<GradientCurve>>& curves = m_curves[round];
    if (curves.empty())
        for (const RoundMember& member : m_rounds[round].members)
            curves.push_back(GradientCurve::of(m_graph, m_index.compute(member.rank), m_rounds[round], member));
    return curves;
}

const GradientTraffic& TrialGraph::gradients() const {
    const std::lock_guard lock(m_reading);
    if (!m_gradients) m_gradients.emplace(m_graph, m_analysis);
    return *m_gradients;
}

const PipelineParts& TrialGraph::pipeline() const {
    const std::lock_guard lock(m_reading);
    if (!m_pipeline) m_pipeline.emplace(m_graph, m_analysis);
    return *m_pipeline;
}

replay::TaskGraph Edit::applied(const TrialGraph& of, EditEffect& effect) const {
    replay::TaskGraph graph = of.graph();
    apply(graph, of.analysis(), effect);
    return graph;
}

}  // namespace rankscope::edits
