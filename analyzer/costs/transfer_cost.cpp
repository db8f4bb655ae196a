// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/transfer_cost.h"

#include <algorithm>
#include <cmath>

#include "analyzer/costs/link_bound.h"
#include "analyzer/costs/link_startup.h"
#include "analyzer/facts/operation.h"

namespace rankscope::costs {
namespace {

/// The formulas give a range; its middle on a scale of ratios.
double middle(const Range& range) {
    return std::sqrt(std::max(range.low, 1e-9) * std::max(range.high, 1e-9));
}

/// The formulas know neither chunks nor channels nor what else is on the links: what they leave of a time, as a share
/// of it. Of the 154 sizes of five operations that SuperBench's nccl-tests tables of eight A100 hold (4 B to 8 GiB), 93
/// % lie within 5 % of the pieces alpha + beta x bytes through them; 95 % within 5.7 %.
constexpr double kFormulaError = 0.05;
/// Less of a transfer beside one other that shares its link: at half the rate meanwhile, half of this share at most is
/// owed to it, which is under kFormulaError.
constexpr double kAlone = 0.05;
/// Of the range of bandwidths, how far a protocol's share with another algorithm is known: a tree's 0.8 to 0.92 of a
/// ring's rate (bandwidthShare) moves the place of LL in its range by 0.23 at most.
constexpr double kSameProtocol = 0.25;

}  // namespace

std::optional<CostEstimate> TransferCost::of(const Message& message, AlgorithmChoice choice) const {
    if (choice == message.present) return CostEstimate{{1, 1, 1}, Basis::measuredHere};
    if (auto here = compared(message, choice, EvidenceFrom::trace)) return here;
    if (auto sweep = compared(message, choice, EvidenceFrom::ncclTests)) return sweep;
    return modelled(message, choice);
}

std::optional<CostEstimate> TransferCost::compared(const Message& message, AlgorithmChoice choice,
                                                   EvidenceFrom from) const {
    const CostCurve* now = m_evidence.find({from, message.shape, message.op, message.present});
    const CostCurve* then = m_evidence.find({from, message.shape, message.op, choice});
    if (now == nullptr || then == nullptr) return std::nullopt;
    const auto nowNs = now->at(message.bytes), thenNs = then->at(message.bytes);
    if (!nowNs || !thenNs) return std::nullopt;
    const double scale = thenNs->ns / nowNs->ns;
    const double error = std::hypot(nowNs->error, thenNs->error);
    return CostEstimate{{scale / (1 + error), scale, scale * (1 + error)},
                        from == EvidenceFrom::trace ? Basis::measuredHere : Basis::sweep};
}

std::optional<LinkModel> TransferCost::linkOf(const Message& message) const {
    facts::Communicator group;
    group.size = message.shape.ranks;
    group.nodes = message.shape.nodes;
    group.smallestNode = message.smallestNode;
    const std::optional<LinkModel> link = linkModel(m_peaks, group, message.op);
    if (link && link->alphaNs > 0) return link;
    const std::optional<LinkModel> reached =
        m_peaks.atLeast(group) ? linkWithStartup(m_peaks, group, message.op) : std::nullopt;
    const CostCurve* curve = m_evidence.find({EvidenceFrom::trace, message.shape, message.op, message.present});
    if (curve == nullptr || !curve->fit.holds() || !isModelled(message.op, message.present)) return reached;
    const FitPiece& small = curve->fit.pieces.front();
    const FitPiece& large = curve->fit.pieces.back();
    if (!(large.betaNsPerByte > 0)) return reached;
    const double perByte = middle(collectiveNs({0, 1}, message.op, message.shape.ranks, 1, message.present));
    const double perStart = middle(collectiveNs({1, 1e18}, message.op, message.shape.ranks, 0, message.present));
    return LinkModel{small.alphaNs / perStart, perByte / large.betaNsPerByte};
}

facts::Estimate TransferCost::modelledNs(const LinkModel& link, const Message& message, double explainedNs,
                                         AlgorithmChoice choice) const {
    const AlgorithmChoice present = message.present;
    const double busNs = message.bytes * facts::busFactor(message.op, message.shape.ranks) / link.bytesPerNs;
    const Range hops = hopsOf(message.op, message.shape.ranks, choice.algorithm),
                startup = startupShare(choice.protocol), bandwidth = bandwidthShare(choice);
    const facts::Estimate start = m_startup.of(message.shape, choice.protocol);
    facts::Estimate rate{0, 0.5, 1};
    if (choice.protocol == present.protocol && isModelled(message.op, present)) {
        // What is left of the present time says which share of the bandwidth the protocol reaches here.
        const Range reached = bandwidthShare(present);
        const double startNs = middle(hopsOf(message.op, message.shape.ranks, present.algorithm)) * link.alphaNs *
                               startup.at(start.expected);
        const double share = explainedNs > startNs ? busNs / (explainedNs - startNs) : reached.high;
        const double place = reached.high > reached.low
                                 ? std::clamp((share - reached.low) / (reached.high - reached.low), 0.0, 1.0)
                                 : 0.5;
        rate = {std::max(0.0, place - kSameProtocol), place, std::min(1.0, place + kSameProtocol)};
    }
    const auto timeNs = [&](double hopCount, double startPlace, double ratePlace) {
        return hopCount * link.alphaNs * startup.at(startPlace) + busNs / bandwidth.at(ratePlace);
    };
    return {timeNs(hops.low, start.low, rate.high) / (1 + kFormulaError),
            timeNs(middle(hops), start.expected, rate.expected),
            timeNs(hops.high, start.high, rate.low) * (1 + kFormulaError)};
}

std::optional<CostEstimate> TransferCost::modelled(const Message& message, AlgorithmChoice choice) const {
    if (!isModelled(message.op, choice)) return std::nullopt;
    std::optional<LinkModel> link = linkOf(message);
    if (!link) return std::nullopt;
    // Where the measured time lies outside of what the formulas allow for the present choice, the rest stays whatever
    // the choice.
    double explained = message.presentNs, fastest = explained, linkBound = 0;
    if (isModelled(message.op, message.present)) {
        link = seenLink(*link, message.op, message.shape.ranks, message.bytes, message.present, message.presentNs);
        const Range now = collectiveNs(*link, message.op, message.shape.ranks, message.bytes, message.present);
        explained =
            explainedNs(*link, message.op, message.shape.ranks, message.bytes, message.present, message.presentNs);
        // Where it takes longer than the link alone explains, the device may hold the protocol, or the link is slower
        // than stated: neither is ruled out.
        const double boundNs = linkBoundNs(*link, message.op, message.shape.ranks, message.bytes, message.present);
        if (message.presentNs > boundNs * (1 + kFormulaError)) linkBound = boundNs;
        // What others on the links take stays as well: where they were under way the present choice may be as good as
        // the formulas allow.
        fastest = message.sharedPart > kAlone ? std::min(explained, now.low) : explained;
    }
    const double expected = explained * std::pow(fastest / explained, message.sharedPart);
    const facts::Estimate then = modelledNs(*link, message, expected, choice);
    facts::Estimate scale{then.low / explained, then.expected / expected, then.high / fastest};
    if (linkBound > 0)
        scale.high = std::max(scale.high, modelledNs(*link, message, linkBound, choice).high / linkBound);
    return CostEstimate{scale, Basis::model};
}

std::optional<TransferCost::Chosen> TransferCost::cheapest(const Message& message,
                                                           const std::vector<AlgorithmChoice>& allowed,
                                                           const std::vector<AlgorithmChoice>& mayHave) const {
    std::optional<Chosen> best;
    double low = 0, high = 0;
    for (AlgorithmChoice choice : allowed) {
        const auto cost = of(message, choice);
        if (!cost) continue;
        low = best ? std::min(low, cost->scale.low) : cost->scale.low;
        high = best ? std::min(high, cost->scale.high) : cost->scale.high;
        if (!best || cost->scale.expected < best->cost.scale.expected) best = Chosen{choice, *cost};
    }
    for (AlgorithmChoice choice : mayHave) {
        const auto cost = best ? of(message, choice) : std::nullopt;
        if (!cost) continue;
        low = std::min(low, cost->scale.low);
        if (cost->scale.expected < best->cost.scale.expected) best = Chosen{choice, *cost};
    }
    if (best) best->cost.scale = {low, best->cost.scale.expected, std::max(high, best->cost.scale.expected)};
    return best;
}

std::optional<Range> TransferCost::nsOfSize(const Message& like, double bytes,
                                            const std::vector<AlgorithmChoice>& allowed) const {
    if (const CostCurve* curve = m_evidence.find({EvidenceFrom::trace, like.shape, like.op, like.present})) {
        if (const auto measured = curve->at(bytes))
            return Range{measured->ns / (1 + measured->error), measured->ns * (1 + measured->error)};
    }
    const std::optional<LinkModel> link = linkOf(like);
    if (!link || !isModelled(like.op, like.present)) return std::nullopt;
    const Range now = collectiveNs(*link, like.op, like.shape.ranks, like.bytes, like.present);
    const double scale = like.presentNs / std::clamp(like.presentNs, now.low, now.high);
    std::optional<Range> best;
    for (AlgorithmChoice choice : allowed) {
        if (!isModelled(like.op, choice)) continue;
        const Range range = collectiveNs(*link, like.op, like.shape.ranks, bytes, choice);
        if (!best || middle(range) * scale < middle(*best)) best = Range{range.low * scale, range.high * scale};
    }
    return best;
}

}  // namespace rankscope::costs
