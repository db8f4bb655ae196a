// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/transfer_cost.h"

#include <algorithm>
#include <cmath>

namespace rankscope::analyzer {
namespace {

/// The formulas give a range; its middle on a scale of ratios.
double middle(const Range& range) { return std::sqrt(std::max(range.low, 1e-9) * std::max(range.high, 1e-9)); }

}  // namespace

std::optional<CostEstimate> TransferCost::of(const Message& message, AlgorithmChoice choice) const {
    if (choice == message.present) return CostEstimate{1, 1, 1, Basis::measuredHere};
    if (auto here = compared(message, choice, EvidenceFrom::trace)) return here;
    if (auto sweep = compared(message, choice, EvidenceFrom::ncclTests)) return sweep;
    return modelled(message, choice);
}

std::optional<CostEstimate> TransferCost::compared(const Message& message, AlgorithmChoice choice, EvidenceFrom from) const {
    const CostCurve* now = m_evidence.find({from, message.shape, message.op, message.present});
    const CostCurve* then = m_evidence.find({from, message.shape, message.op, choice});
    if (now == nullptr || then == nullptr) return std::nullopt;
    const auto nowNs = now->at(message.bytes), thenNs = then->at(message.bytes);
    if (!nowNs || !thenNs) return std::nullopt;
    const double scale = thenNs->ns / nowNs->ns;
    const double error = std::hypot(nowNs->error, thenNs->error);
    return CostEstimate{scale, scale / (1 + error), scale * (1 + error), from == EvidenceFrom::trace ? Basis::measuredHere : Basis::sweep};
}

std::optional<LinkModel> TransferCost::linkOf(const Message& message) const {
    Communicator group;
    group.size = message.shape.ranks;
    group.nodes = message.shape.nodes;
    group.smallestNode = message.smallestNode;
    if (const auto link = linkModel(m_analysis.peaks, group, message.op); link && link->alphaNs > 0) return link;
    const CostCurve* curve = m_evidence.find({EvidenceFrom::trace, message.shape, message.op, message.present});
    if (curve == nullptr || !curve->fit.holds() || !isModelled(message.op, message.present)) return std::nullopt;
    const FitPiece& small = curve->fit.pieces.front();
    const FitPiece& large = curve->fit.pieces.back();
    if (!(large.betaNsPerByte > 0)) return std::nullopt;
    const double perByte = middle(collectiveNs({0, 1}, message.op, message.shape.ranks, 1, message.present));
    const double perStart = middle(collectiveNs({1, 1e18}, message.op, message.shape.ranks, 0, message.present));
    return LinkModel{small.alphaNs / perStart, perByte / large.betaNsPerByte};
}

std::optional<CostEstimate> TransferCost::modelled(const Message& message, AlgorithmChoice choice) const {
    if (!isModelled(message.op, choice)) return std::nullopt;
    const std::optional<LinkModel> link = linkOf(message);
    if (!link) return std::nullopt;
    const Range then = collectiveNs(*link, message.op, message.shape.ranks, message.bytes, choice);
    if (!isModelled(message.op, message.present)) return CostEstimate{middle(then) / message.presentNs, then.low / message.presentNs, then.high / message.presentNs, Basis::model};
    // Where the measured time lies outside of what the formulas allow for the present choice, the rest stays whatever the choice.
    const Range now = collectiveNs(*link, message.op, message.shape.ranks, message.bytes, message.present);
    const double explained = std::clamp(message.presentNs, now.low, now.high);
    return CostEstimate{middle(then) / explained, then.low / explained, then.high / explained, Basis::model};
}

std::optional<TransferCost::Chosen> TransferCost::cheapest(const Message& message, const std::vector<AlgorithmChoice>& allowed) const {
    std::optional<Chosen> best;
    double low = 0, high = 0;
    for (AlgorithmChoice choice : allowed) {
        const auto cost = of(message, choice);
        if (!cost) continue;
        low = best ? std::min(low, cost->scaleLow) : cost->scaleLow;
        high = best ? std::min(high, cost->scaleHigh) : cost->scaleHigh;
        if (!best || cost->scale < best->cost.scale) best = Chosen{choice, *cost};
    }
    if (best) best->cost.scaleLow = low, best->cost.scaleHigh = high;
    return best;
}

std::optional<Range> TransferCost::nsOfSize(const Message& like, double bytes, const std::vector<AlgorithmChoice>& allowed) const {
    if (const CostCurve* curve = m_evidence.find({EvidenceFrom::trace, like.shape, like.op, like.present})) {
        if (const auto measured = curve->at(bytes)) return Range{measured->ns / (1 + measured->error), measured->ns * (1 + measured->error)};
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

}  // namespace rankscope::analyzer
