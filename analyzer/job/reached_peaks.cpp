// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/costs/most_share.h"
#include "analyzer/costs/reached_share.h"
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
    double certainPort = 0, certainCard = 0;  // whatever algorithm carried it, where that is not recorded
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
    for (const store::Collective& c : analysis.facts.collectives) {
        if (!c.step || !c.transferNs || !c.bytes || *c.bytes <= 0 || !store::isSynchronizing(c.op) ||
            analysis.sharedCollectives.contains(c.id))
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
        const double onPort = portBytes(op, algorithm, communicator.size, static_cast<double>(size));
        // The medium is not known. As PCIe LL reaches the largest part of it and the start-up is the shortest, so that
        // the link carried no less; and no hop of the network is shorter than the least of all.
        costs::LinkModel link = costs::linkOfRate(communicator, std::min(onPort / timeNs, costs::kPcieGbps),
                                                  ReachedPeakThresholds::kLeastAlphaNs);
        link.nearMedium = costs::LinkMedium::pcie;
        link.nearAlphaShare = 1;
        const double startNs = costs::latencyHops(link, op, communicator.size, choice).low * link.alphaNs;
        if (timeNs < 2 * startNs) continue;  // of such a time the start-up may be all
        const double share = costs::bandwidthShare(link, op, choice, costs::kAnySize).high;
        const double rate = onPort / (timeNs - startNs) / share;
        const double certain = rate * share / costs::mostShare(link, op, choice);
        if (communicator.nodes <= 1 || communicator.smallestNode > 1) {
            reached.port = std::max(reached.port, rate);
            reached.certainPort = std::max(reached.certainPort, certain);
        }
        if (communicator.nodes <= 1) continue;
        reached.certainCard = std::max(reached.certainCard, certain / costs::nicsPerRank(communicator, op));
        double& card = reached.cardOf[id];
        card = std::max(card, rate / costs::nicsPerRank(communicator, op));
        reached.card = std::max(reached.card, card);
    }
}

void addMessages(const Analysis& analysis, const std::vector<UndisturbedMessage>& messages, Reached& reached) {
    std::map<std::tuple<int, int, int64_t>, std::vector<double>> times;  // by sender, receiver, size
    for (const auto& [row, ns] : messages) times[{row->srcRank, row->dstRank, *row->bytes}].push_back(ns);
    for (const auto& [who, samples] : times) {
        const auto& [from, to, size] = who;
        const double timeNs = facts::median(samples);
        if (samples.size() < CollectiveSpeedThresholds::kFewest || timeNs < 2 * ReachedPeakThresholds::kLeastAlphaNs)
            continue;
        if (static_cast<double>(analysis.clockBoundNs({from, to})) > ReachedPeakThresholds::kClockShare * timeNs)
            continue;
        const double rate = static_cast<double>(size) / (timeNs - ReachedPeakThresholds::kLeastAlphaNs);
        const bool inside = analysis.facts.sameHost({from, to});
        for (double* there :
             {inside ? &reached.port : &reached.card, inside ? &reached.certainPort : &reached.certainCard})
            *there = std::max(*there, rate);
    }
}

/// Peaks that the job exceeded, as a reader is told; empty: none.
struct Refuted {
    std::string intra, inter;
};

void set(const Reached& reached, const Refuted& refuted, costs::LinkPeaks& peaks, bool intraTold, bool interTold) {
    const auto atLeast = [](double rate, const std::string& instead) {
        return costs::LinkClass{
            rate, 0, costs::PeakKind::atLeast,
            "the best that this job reached" + (instead.empty() ? "" : ", which refutes " + instead)};
    };
    if (!intraTold && reached.port > 0) peaks.intra = atLeast(reached.port, refuted.intra);
    if (!interTold && reached.card > 0) peaks.inter = atLeast(reached.card, refuted.inter);
}

/// Holds a class of links as the job's own rates are held against it.
struct Exceeded {
    std::optional<costs::LinkClass>& peak;
    std::vector<costs::LinkClass>& others;  // what else is said of it, the best source first
    double reached = 0;
    const char* place;
    const char* key;
};

/// What the job exceeds itself cannot be a peak, whoever says so: the next source that it does not exceed is. Returns
/// what was refuted last, where none is left.
std::string refuteExceeded(const Exceeded& of, std::vector<std::string>& warnings) {
    std::string refuted;
    while (of.peak && of.reached > ReachedPeakThresholds::kRefuted * of.peak->bytesPerNs) {
        refuted = fmt::format("{:.4g} GB/s of {}", of.peak->bytesPerNs, of.peak->source);
        of.peak.reset();
        std::string instead = fmt::format(
            "it is not used; tell what the links can do in 1e9 bytes/s, one direction, per rank: --links "
            "\"{}:gbps=NUMBER\"",
            of.key);
        if (!of.others.empty()) {
            of.peak = of.others.front();
            of.others.erase(of.others.begin());
            instead = fmt::format("{:.4g} GB/s of {} is used instead", of.peak->bytesPerNs, of.peak->source);
        }
        warnings.push_back(
            fmt::format("links {}: this job reached {:.4g} GB/s a rank there, which refutes the peak of {}: {}",
                        of.place, of.reached, refuted, instead));
    }
    return of.peak ? std::string() : refuted;
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
        const double rate = busBytesPerNs(largeCollectives(analysis, communicator), communicator.size);
        reached.port = std::max(reached.port, rate * *slowness);
    }
}

}  // namespace

void addReachedPeaks(Analysis& analysis, const std::vector<UndisturbedMessage>& messages) {
    costs::LinkPeaks& peaks = analysis.peaks;
    Reached reached;
    addCollectives(analysis, reached);
    addMessages(analysis, messages, reached);
    const Refuted refuted{
        refuteExceeded({peaks.intra, peaks.intraOthers, reached.certainPort, "inside a node", "intra"}, peaks.warnings),
        refuteExceeded({peaks.inter, peaks.interOthers, reached.certainCard, "between nodes", "inter"},
                       peaks.warnings)};
    const bool intraTold = peaks.intra.has_value(), interTold = peaks.inter.has_value();
    if (intraTold && interTold) return costs::nameSources(peaks);
    addSiblingsOfSlowEdges(analysis, reached);
    set(reached, refuted, peaks, intraTold, interTold);
    addSiblingsOfLastToLeave(analysis, reached);
    set(reached, refuted, peaks, intraTold, interTold);
    costs::nameSources(peaks);
}

}  // namespace rankscope::job
