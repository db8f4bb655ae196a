// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/trial_graph.h"

#include <algorithm>
#include <cmath>

#include "analyzer/edits/edit.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"

namespace rankscope::edits {
namespace {

struct Samples {
    std::vector<double> ns;
    costs::AlgorithmChoice choice;
};

/// Of times from the median of their size: 1.4826 x median absolute deviation, as of normal noise.
double scatterOf(const std::map<int64_t, Samples>& bySize) {
    std::vector<double> deviations;
    for (const auto& [bytes, samples] : bySize) {
        if (samples.ns.size() < 2) continue;
        const double typical = facts::median(samples.ns);
        for (double ns : samples.ns)
            if (typical > 0) deviations.push_back(std::abs(ns / typical - 1));
    }
    return 1.4826 * facts::median(std::move(deviations));
}

}  // namespace

TransferPrices::TransferPrices(const TaskGraph& graph, const Analysis& analysis, const BesideCompute& besideCompute) {
    std::map<std::pair<int64_t, store::Op>, std::map<int64_t, Samples>> found;
    for (size_t i = 0; i < graph.exchanges.size(); ++i) {
        const Exchange& exchange = graph.exchanges[i];
        if (exchange.join == kNoTask || exchange.bytes <= 0) continue;
        Samples& samples = found[{exchange.communicatorId, exchange.op}][exchange.bytes];
        samples.ns.push_back(static_cast<double>(graph.longestNs(exchange)) -
                             besideCompute.lostNs(i, Outlook::expected));
        samples.choice = {exchange.algorithm, exchange.protocol};
    }
    for (const auto& [who, bySize] : found) {
        const auto& [communicatorId, op] = who;
        const facts::Communicator* communicator = analysis.facts.findCommunicator(communicatorId);
        costs::CollectivePrice::Sizes sizes;
        for (const auto& [bytes, samples] : bySize)
            if (const double time = facts::median(samples.ns); time > 0)
                sizes[static_cast<double>(bytes)] = {time, facts::medianError(samples.ns), samples.choice};
        if (sizes.empty()) continue;
        m_scatter[who] = scatterOf(bySize);
        m_prices.emplace(
            who, analysis.cost.price(communicator ? *communicator : facts::Communicator(), op, std::move(sizes)));
    }
}

double TransferPrices::scatter(int64_t communicator, store::Op op) const {
    return text::valueAt(m_scatter, {communicator, op});
}

std::optional<facts::Estimate> TransferPrices::ns(int64_t communicator, store::Op op, double bytes) const {
    const auto known = m_prices.find({communicator, op});
    return known == m_prices.end() ? std::nullopt : known->second.ns(bytes);
}

namespace {

Strain strainOf(const GradientRound& round, const TaskGraph& graph, const TransferPrices& prices,
                const BesideCompute& besideCompute) {
    double longest = 0, lost = 0, priced = 0;
    std::vector<double> sums(round.members.size(), 0);
    for (size_t b = 0; b < round.bytes.size(); ++b) {
        longest += static_cast<double>(graph.longestNs(graph.exchanges[round.exchanges[b]]));
        lost += besideCompute.lostNs(round.exchanges[b], Outlook::expected);
        if (const auto price = prices.ns(round.communicator, round.op, round.bytes[b])) priced += price->expected;
        for (size_t m = 0; m < sums.size(); ++m)
            sums[m] += static_cast<double>(graph.durationNs[round.members[m].transfers[b]]);
    }
    Strain strain;
    if (priced > 0 && longest > lost) strain.factor = (longest - lost) / priced;
    for (double sum : sums) strain.shares.push_back(longest > 0 ? sum / longest : 1);
    return strain;
}

}  // namespace

GradientTraffic::GradientTraffic(const TaskGraph& graph, const Analysis& analysis)
    : m_graph(graph),
      m_index(graph),
      m_besideCompute(graph, analysis),
      m_prices(graph, analysis, m_besideCompute),
      m_rounds(gradientRounds(graph, analysis, m_index)),
      m_curves(m_rounds.size()),
      m_waits(m_rounds.size()) {
    // Parameters of ZeRO are gathered bucket by bucket in the order in which they are updated: the plan of the
    // gradients comes first.
    std::stable_partition(m_rounds.begin(), m_rounds.end(),
                          [](const GradientRound& round) { return round.op != store::Op::allGather; });
    for (const GradientRound& round : m_rounds) m_strains.push_back(strainOf(round, graph, m_prices, m_besideCompute));
}

const std::vector<std::optional<GradientCurve>>& GradientTraffic::curves(size_t round) const {
    const std::lock_guard lock(m_reading);
    std::vector<std::optional<GradientCurve>>& curves = m_curves[round];
    if (curves.empty())
        for (const RoundMember& member : m_rounds[round].members)
            curves.push_back(GradientCurve::of(m_graph, m_index.compute(member.rank), m_rounds[round], member));
    return curves;
}

const std::vector<std::optional<BackwardWait>>& GradientTraffic::waits(size_t round) const {
    const std::lock_guard lock(m_reading);
    std::vector<std::optional<BackwardWait>>& waits = m_waits[round];
    if (waits.empty())
        for (const RoundMember& member : m_rounds[round].members)
            waits.push_back(backwardWait(m_graph, m_index.compute(member.rank), member));
    return waits;
}

const GradientTraffic& TrialGraph::gradients() const {
    const std::lock_guard lock(m_reading);
    if (!m_gradients) m_gradients.emplace(m_graph, m_analysis);
    return *m_gradients;
}

std::shared_ptr<const Schedule> TrialGraph::schedule() const {
    const replay::ReplayModel& replay = m_analysis.replay;
    const bool isThere = &m_graph == &replay.graph && replay.unchanged.endNs.size() == m_graph.size();
    if (!isThere) return std::make_shared<const Schedule>(simulate(m_graph));
    return {std::shared_ptr<void>(), &replay.unchanged};  // owns nothing
}

std::shared_ptr<const PipelineParts> TrialGraph::pipeline() const {
    if (m_from != nullptr && m_graph.differsInTimesAlone(m_from->graph())) return m_from->pipeline();
    if (m_tried == Tried::once) return std::make_shared<const PipelineParts>(m_graph, m_analysis);
    const std::lock_guard lock(m_reading);
    if (m_pipeline == nullptr) m_pipeline = std::make_shared<const PipelineParts>(m_graph, m_analysis);
    return m_pipeline;
}

void Edit::apply(TaskGraph& graph, const Analysis& analysis, EditEffect& effect, const TrialGraph* from) const {
    if (m_change)
        m_change(graph, analysis, effect);
    else
        graph = m_made(TrialGraph(graph, analysis, Tried::once, from), effect);
}

TaskGraph Edit::applied(const TrialGraph& of, EditEffect& effect) const {
    if (m_made) return m_made(of, effect);
    TaskGraph graph = of.graph();
    m_change(graph, of.analysis(), effect);
    return graph;
}

}  // namespace rankscope::edits
