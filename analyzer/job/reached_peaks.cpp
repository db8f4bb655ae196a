// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/link_suspects.h"
#include "analyzer/text/lists.h"

namespace rankscope::job {
namespace {

using store::Algorithm;

/// Bytes per ns that a port and a network card carried at least; 0: nothing was seen there.
struct Reached {
    double port = 0;  // of traffic inside a node, also of rings over nodes with two members or more on each: between
                      // those they run at the same rate
    double card = 0;
    std::map<int64_t, double> cardOf;  // by communicator
};

/// Bytes on a rank's port. Where the switch reduces each byte goes there once.
double portBytes(store::Op op, Algorithm algorithm, int ranks, double bytes) {
    const bool inSwitch = algorithm != Algorithm::ring && algorithm != Algorithm::tree && algorithm != Algorithm::pat &&
                          algorithm != Algorithm::unknown;
    return bytes * (inSwitch ? std::min(1.0, facts::busFactor(op, ranks)) : facts::busFactor(op, ranks));
}

void addCollectives(const Analysis& analysis, Reached& reached) {
    using Kind = std::tuple<int64_t, store::Op, Algorithm, store::Protocol, int64_t>;
    std::map<Kind, std::vector<double>> times;
    const std::set<int64_t> shared = sharedCollectives(analysis);
    for (const store::Collective& c : analysis.facts.collectives) {
        if (!c.step || !c.transferNs || !c.bytes || *c.bytes <= 0 || !store::isSynchronizing(c.op) ||
            shared.count(c.id) != 0)
            continue;
        if (!std::ranges::binary_search(analysis.steps, *c.step)) continue;
        times[{c.communicatorId, c.op, c.algorithm, c.protocol, *c.bytes}].push_back(
            static_cast<double>(*c.transferNs));
    }
    for (const auto& [kind, samples] : times) {
        const auto& [id, op, algorithm, protocol, size] = kind;
        const auto at = analysis.facts.communicators.find(id);
        if (at == analysis.facts.communicators.end() || at->second.size < 2 ||
            samples.size() < CollectiveSpeedThresholds::kFewest)
            continue;
        const facts::Communicator& communicator = at->second;
        const costs::AlgorithmChoice choice{algorithm, protocol};
        const double timeNs = facts::median(samples);
        if (static_cast<double>(analysis.clockBoundNs(communicator.ranks)) >
            ReachedPeakThresholds::kClockShare * timeNs)
            continue;
        const costs::LinkModel link{ReachedPeakThresholds::kLeastAlphaNs, 1, communicator.nodes};
        const double startNs = costs::latencyHops(link, op, communicator.size, choice).low * link.alphaNs;
        if (timeNs < 2 * startNs) continue;  // of such a time the start-up may be all
        const double rate = portBytes(op, algorithm, communicator.size, static_cast<double>(size)) /
                            (timeNs - startNs) / costs::bandwidthShare(link, op, choice, costs::kAnySize).high;
        if (communicator.nodes <= 1 || communicator.smallestNode > 1) reached.port = std::max(reached.port, rate);
        if (communicator.nodes <= 1) continue;
        double& card = reached.cardOf[id];
        card = std::max(card, rate / costs::nicsPerRank(communicator, op));
        reached.card = std::max(reached.card, card);
    }
}

void addMessages(const Analysis& analysis, Reached& reached) {
    std::map<std::tuple<int, int, int64_t>, std::vector<double>> times;  // by sender, receiver, size
    for (const auto& [row, ns] : undisturbedMessages(analysis))
        times[{row->srcRank, row->dstRank, *row->bytes}].push_back(ns);
    for (const auto& [who, samples] : times) {
        const auto& [from, to, size] = who;
        const double timeNs = facts::median(samples);
        if (samples.size() < CollectiveSpeedThresholds::kFewest || timeNs < 2 * ReachedPeakThresholds::kLeastAlphaNs)
            continue;
        if (static_cast<double>(analysis.clockBoundNs({from, to})) > ReachedPeakThresholds::kClockShare * timeNs)
            continue;
        const double rate = static_cast<double>(size) / (timeNs - ReachedPeakThresholds::kLeastAlphaNs);
        double& there = analysis.facts.sameHost({from, to}) ? reached.port : reached.card;
        there = std::max(there, rate);
    }
}

void set(const Reached& reached, costs::LinkPeaks& peaks, bool intraTold, bool interTold) {
    const auto atLeast = [](double rate) {
        return costs::LinkClass{rate, 0, costs::PeakKind::atLeast, "the best that this job reached"};
    };
    if (!intraTold && reached.port > 0) peaks.intra = atLeast(reached.port);
    if (!interTold && reached.card > 0) peaks.inter = atLeast(reached.card);
}

/// What the job exceeds itself cannot be a peak, whoever says so.
void refuseExceeded(std::optional<costs::LinkClass>& peak, double reached, const char* place,
                    std::vector<std::string>& warnings) {
    if (!peak || reached <= costs::LinkPeakThresholds::kContradiction * peak->bytesPerNs) return;
    warnings.push_back(fmt::format("links {}: {:.4g} GB/s ({}) is not used, for this job reached {:.4g} GB/s there",
                                   place, peak->bytesPerNs, peak->source, reached));
    peak.reset();
}

/// Of the communicators that a slow network edge holds up: what they would reach if it were like its siblings.
void addSiblingsOfSlowEdges(const Analysis& analysis, Reached& reached) {
    for (const LinkProbe& edge : networkEdges(analysis)) {
        if (!edge.slow()) continue;
        for (const auto& [id, card] : std::map<int64_t, double>(reached.cardOf)) {
            const facts::Communicator& communicator = analysis.facts.communicators.at(id);
            const bool uses =
                std::ranges::all_of(edge.ranks, [&](int rank) { return text::contains(communicator.ranks, rank); });
            if (!uses || card < ReachedPeakThresholds::kBusyShare * edge.busBytesPerNs) continue;
            reached.card = std::max(reached.card, card * edge.slowness);
            if (communicator.smallestNode > 1)
                reached.port = std::max(reached.port, card * edge.slowness * communicator.smallestNode);
        }
    }
}

/// The same inside nodes, by who leaves last.
void addSiblingsOfLastToLeave(const Analysis& analysis, Reached& reached) {
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        if (communicator.nodes > 1) continue;
        const std::optional<double> slowness = slowestEdge(analysis, communicator, ReachedPeakThresholds::kMostLead);
        if (!slowness || *slowness < LinkProbeThresholds::kSlow) continue;
        const double rate =
            busBytesPerNs(largeCollectives(analysis, communicator, sharedCollectives(analysis)), communicator.size);
        reached.port = std::max(reached.port, rate * *slowness);
    }
}

}  // namespace

void addReachedPeaks(Analysis& analysis) {
    costs::LinkPeaks& peaks = analysis.peaks;
    Reached reached;
    addCollectives(analysis, reached);
    addMessages(analysis, reached);
    refuseExceeded(peaks.intra, reached.port, "inside a node", peaks.warnings);
    refuseExceeded(peaks.inter, reached.card, "between nodes", peaks.warnings);
    const bool intraTold = peaks.intra.has_value(), interTold = peaks.inter.has_value();
    if (intraTold && interTold) return costs::nameSources(peaks);
    addSiblingsOfSlowEdges(analysis, reached);
    set(reached, peaks, intraTold, interTold);
    addSiblingsOfLastToLeave(analysis, reached);
    set(reached, peaks, intraTold, interTold);
    costs::nameSources(peaks);
}

}  // namespace rankscope::job
