// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_formulas.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/operation.h"

namespace rankscope::costs {

using store::Algorithm;
using store::Op;
using store::Protocol;

/// Returns the share of the link's bandwidth. LL reaches half at best; NCCL's table goes down to a quarter where the
/// SMs cannot poll the flags fast enough.
Range bandwidthShare(AlgorithmChoice choice) {
    if (choice.algorithm == Algorithm::pat) return {0.7, 0.8};  // tuning.cc: 0.75
    Range share{1, 1};
    if (choice.protocol == Protocol::ll) share = {0.25, 0.5};
    if (choice.protocol == Protocol::ll128) share = {0.85, 120.0 / 128};
    if (choice.algorithm == Algorithm::tree) {
        share.low *= 0.8;
        share.high *= 0.92;
    }
    return share;
}

/// Returns the latency per hop against that of Simple (baseLat and hwLat of tuning.cc: LL 0.18 to 0.36, LL128 0.29 to
/// 0.6 of it).
Range latencyShare(Protocol protocol) {
    if (protocol == Protocol::ll) return {0.2, 0.4};
    if (protocol == Protocol::ll128) return {0.3, 0.6};
    return {1, 1};
}

Range hopsOf(Op op, int ranks, Algorithm algorithm) {
    const double levels = std::ceil(std::log2(std::max(ranks, 2)));
    if (algorithm == Algorithm::tree) return {2 * levels, 2 * levels};
    if (algorithm == Algorithm::pat) {
        // PAT is priced by its steps, and as tuning.cc has it: shorter ones, and a part that grows with the ranks (2.8
        // us against 14 us a hop of Simple over the network).
        const double tuned = levels / 3.5 + 0.2 * ranks;
        return {std::min(levels, tuned), std::max(levels, tuned)};
    }
    const double hops = facts::latencyHops(op, ranks);
    return {hops, hops};
}

std::optional<LinkModel> linkModel(const LinkPeaks& peaks, const facts::Communicator& communicator, Op op) {
    const std::optional<double> ceiling = peaks.busCeiling(communicator, op);
    return ceiling ? std::optional(LinkModel{peaks.alphaPerHop(communicator), *ceiling}) : std::nullopt;
}

bool isModelled(Op op, AlgorithmChoice choice) {
    if (choice.protocol == Protocol::unknown) return false;
    if (choice.algorithm == Algorithm::ring)
        return op == Op::allReduce || op == Op::allGather || op == Op::reduceScatter;
    if (choice.algorithm == Algorithm::pat)
        return choice.protocol == Protocol::simple && (op == Op::allGather || op == Op::reduceScatter);
    return choice.algorithm == Algorithm::tree && op == Op::allReduce;
}

Range collectiveNs(const LinkModel& link, Op op, int ranks, double bytes, AlgorithmChoice choice) {
    const Range bandwidth = bandwidthShare(choice);
    const Range latency = latencyShare(choice.protocol);
    const Range hops = hopsOf(op, ranks, choice.algorithm);
    const double busNs = bytes * facts::busFactor(op, ranks) / link.bytesPerNs;
    return {hops.low * link.alphaNs * latency.low + busNs / bandwidth.high,
            hops.high * link.alphaNs * latency.high + busNs / bandwidth.low};
}

std::vector<AlgorithmChoice> algorithmChoices(Op op) {
    std::vector<AlgorithmChoice> choices;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree})
        for (Protocol protocol : {Protocol::simple, Protocol::ll128, Protocol::ll})
            if (isModelled(op, {algorithm, protocol})) choices.push_back({algorithm, protocol});
    return choices;
}

double cheapestNs(const LinkModel& link, Op op, int ranks, double bytes) {
    double best = 0;
    for (AlgorithmChoice choice : algorithmChoices(op)) {
        const double middle = collectiveNs(link, op, ranks, bytes, choice).middle();
        if (best == 0 || middle < best) best = middle;
    }
    return best > 0 ? best : collectiveNs(link, op, ranks, bytes, {}).middle();
}

std::string toSetting(Algorithm algorithm) {
    return algorithm == Algorithm::tree ? "tree" : "ring";
}

std::string toSetting(Protocol protocol) {
    return protocol == Protocol::ll ? "LL" : protocol == Protocol::ll128 ? "LL128" : "Simple";
}

double unknownAlphaNs(bool betweenNodes) {
    // Between nodes NCCL's tables end near it (src/graph/tuning.cc of 2.28, network by Simple: 14 us, and the
    // switches); inside one it is PCIe's 5.7 us there with its part of what a collective costs beside its hops.
    return betweenNodes ? 20'000 : 8'000;
}

std::optional<LinkModel> linkWithLatency(const LinkPeaks& peaks, const facts::Communicator& communicator,
                                         store::Op op) {
    std::optional<LinkModel> link = linkModel(peaks, communicator, op);
    if (link && link->alphaNs <= 0) link->alphaNs = unknownAlphaNs(communicator.nodes > 1);
    return link;
}

std::optional<LinkModel> linkToCompare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op) {
    return peaks.atLeast(communicator, op) ? linkWithLatency(peaks, communicator, op)
                                           : linkModel(peaks, communicator, op);
}

double linkBoundNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice) {
    const double ofFormat = bandwidthShare({store::Algorithm::ring, choice.protocol}).high;
    const double ofAlgorithm = bandwidthShare({choice.algorithm, store::Protocol::simple}).low;
    const double startNs = hopsOf(op, ranks, choice.algorithm).high * link.alphaNs * latencyShare(choice.protocol).high;
    return startNs + bytes * facts::busFactor(op, ranks) / link.bytesPerNs / (ofFormat * ofAlgorithm);
}

LinkModel seenLink(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs) {
    const double startNs = linkBoundNs(link, op, ranks, 0, choice),
                 boundNs = linkBoundNs(link, op, ranks, bytes, choice);
    const bool mostlyBytes = boundNs >= 2 * startNs;  // above n*: less says more about latency than about the link
    if (!mostlyBytes || measuredNs < kSlowLink * collectiveNs(link, op, ranks, bytes, choice).high) return link;
    return {link.alphaNs, link.bytesPerNs * (boundNs - startNs) / (measuredNs - startNs)};
}

double explainedNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs) {
    const Range allowed = collectiveNs(link, op, ranks, bytes, choice);
    if (measuredNs >= kSlowLink * allowed.high) return linkBoundNs(link, op, ranks, bytes, choice);
    return std::clamp(measuredNs, allowed.low, allowed.high);
}

}  // namespace rankscope::costs
