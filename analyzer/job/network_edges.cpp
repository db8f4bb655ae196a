// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/link_suspects.h"
#include "analyzer/text/units.h"

namespace rankscope::job {
namespace {

constexpr size_t kEdgeRows = 2;  // evidence rows per edge

struct Edge {
    std::map<int, std::vector<const facts::NetworkSend*>> ofClass;  // by power of two of the size
    int64_t communicatorId = 0;
};
using Edges = std::map<std::pair<int, int>, Edge>;  // by sender and receiver

/// Bytes per ns while on the network.
double rateOf(const facts::NetworkSend& send) {
    return static_cast<double>(send.bytes) / static_cast<double>(std::max<int64_t>(1, send.networkNs));
}

Edges collectEdges(const Analysis& analysis) {
    Edges edges;
    for (const facts::RankSummary& rank : analysis.ranks) {
        for (const facts::NetworkSend& send : rank.networkSends) {
            const auto at = analysis.facts.communicators.find(send.communicatorId);
            if (send.bytes < NetworkEdgeThresholds::kFewestBytes || send.networkNs <= 0 ||
                at == analysis.facts.communicators.end())
                continue;
            const std::vector<int>& members = at->second.ranks;
            // Of a group with missing members the rest cannot be numbered.
            if (members.size() != static_cast<size_t>(at->second.size) || send.peer < 0 ||
                static_cast<size_t>(send.peer) >= members.size())
                continue;
            Edge& edge = edges[{rank.rank, members[static_cast<size_t>(send.peer)]}];
            edge.communicatorId = send.communicatorId;
            edge.ofClass[std::bit_width(static_cast<uint64_t>(send.bytes))].push_back(&send);
        }
    }
    return edges;
}

double medianRate(const std::vector<const facts::NetworkSend*>& sends) {
    std::vector<double> rates;
    for (const facts::NetworkSend* send : sends) rates.push_back(rateOf(*send));
    return facts::median(std::move(rates));
}

/// What the fastest quarter of the edges reaches, by size. Sizes that only one edge carried tell nothing.
std::map<int, double> siblingRates(const Edges& edges) {
    std::map<int, std::vector<double>> rates;
    for (const auto& [ends, edge] : edges)
        for (const auto& [size, sends] : edge.ofClass)
            if (sends.size() >= CollectiveSpeedThresholds::kFewest) rates[size].push_back(medianRate(sends));
    std::map<int, double> result;
    for (auto& [size, values] : rates) {
        if (values.size() < 2) continue;
        std::ranges::sort(values, std::greater<>());
        result[size] =
            values[static_cast<size_t>(static_cast<double>(values.size() - 1) * NetworkEdgeThresholds::kFastShare)];
    }
    return result;
}

std::string hostOf(const Analysis& analysis, int rank) {
    const facts::RankFacts* known = analysis.facts.findRank(rank);
    return known == nullptr || known->host.empty() ? "its host" : known->host;
}

std::string edgeText(const LinkProbe& edge) {
    return fmt::format(
        "rank {} to rank {}: {:.1f} GB/s while on the network (SendWait), its siblings {:.1f} GB/s, in {} large "
        "transfers",
        edge.ranks[0], edge.ranks[1], edge.busBytesPerNs, edge.peakBytesPerNs, edge.samples);
}

/// The two ends of a rail between two nodes carry the same traffic: what is slow between them is told, not on which
/// side.
void addPairs(const LinkSuspects& told, std::vector<LinkSuspect>& suspects) {
    std::map<std::pair<int, int>, std::vector<const LinkProbe*>> pairs;
    for (const LinkProbe* edge : told.unexplained) pairs[std::minmax(edge->ranks[0], edge->ranks[1])].push_back(edge);
    for (const auto& [ends, slow] : pairs) {
        suspects.push_back({.ranks = {ends.first, ends.second},
                            .pair = true,
                            .bothWays = slow.size() > 1,
                            .betweenNodes = true,
                            .explains = slow});
    }
}

double worst(const LinkSuspect& suspect) {
    double slowness = 1;
    for (const LinkProbe* edge : suspect.explains) slowness = std::max(slowness, edge->slowness);
    return slowness;
}

std::string placeText(const Analysis& analysis, const LinkSuspect& suspect, double slowness) {
    const int first = suspect.ranks.front();
    if (suspect.node)
        return fmt::format("{} ({}): its network links are {:.1f} times slower than those of other nodes",
                           hostOf(analysis, first), text::ranksText(suspect.ranks), slowness);
    if (!suspect.pair)
        return fmt::format("rank {} on {}: its network link is {:.1f} times slower than those of other ranks", first,
                           hostOf(analysis, first), slowness);
    const int second = suspect.ranks.back();
    return fmt::format(
        "the network between rank {} ({}) and rank {} ({}) is {:.1f} times slower than that of other ranks{}", first,
        hostOf(analysis, first), second, hostOf(analysis, second), slowness,
        suspect.bothWays ? "; it is slow both ways, and no other traffic tells at which of the two ends"
                         : ", one way only");
}

/// Turns a suspect of edges into one of the collectives that those edges hold up.
void explainCollectives(const Analysis& analysis, std::vector<const LinkProbe*>& open, LinkSuspect& suspect) {
    const double slowness = worst(suspect);
    const std::vector<const LinkProbe*> edges = std::exchange(suspect.explains, {});
    suspect.exonerates.clear();
    std::set<int> ends;
    for (const LinkProbe* edge : edges) ends.insert(edge->ranks.begin(), edge->ranks.end());
    for (const LinkProbe* probe : open) {
        const auto touched = std::ranges::count_if(ends, [&](int rank) { return probe->touches(rank); });
        if (probe->betweenNodes && touched > 1 &&
            slowness - 1 >= NetworkEdgeThresholds::kExplained * (probe->slowness - 1))
            suspect.explains.push_back(probe);
    }
    for (const LinkProbe* probe : suspect.explains) std::erase(open, probe);
    for (const LinkProbe* edge : edges) {
        if (suspect.facts.size() < kEdgeRows) suspect.facts.push_back(edgeText(*edge));
        suspect.rows.insert(suspect.rows.end(), edge->rows.begin(), edge->rows.end());
    }
    suspect.network = placeText(analysis, suspect, slowness);
}

}  // namespace

std::vector<LinkProbe> networkEdges(const Analysis& analysis) {
    const Edges edges = collectEdges(analysis);
    const std::map<int, double> siblings = siblingRates(edges);
    std::vector<LinkProbe> probes;
    for (const auto& [ends, edge] : edges) {
        LinkProbe probe;
        double bytes = 0, networkNs = 0, expectedNs = 0;
        for (const auto& [size, sends] : edge.ofClass) {
            const auto sibling = siblings.find(size);
            if (sibling == siblings.end() || sends.size() < CollectiveSpeedThresholds::kFewest) continue;
            double classBytes = 0;
            for (const facts::NetworkSend* send : sends) classBytes += static_cast<double>(send->bytes);
            bytes += classBytes;
            networkNs += classBytes / medianRate(sends);
            expectedNs += classBytes / sibling->second;
            probe.samples += sends.size();
            for (size_t i = 0; i < sends.size() && probe.rows.size() < kEdgeRows; ++i)
                probe.rows.push_back(
                    {"proxy_op", sends[i]->rowId, ends.first,
                     fmt::format("{} to rank {} at {:.1f} GB/s", text::bytesText(static_cast<double>(sends[i]->bytes)),
                                 ends.second, rateOf(*sends[i]))});
        }
        if (probe.samples == 0) continue;
        probe.communicatorId = edge.communicatorId;
        probe.pair = probe.betweenNodes = true;
        probe.ranks = {ends.first, ends.second};
        probe.slowness = networkNs / expectedNs;
        probe.busBytesPerNs = bytes / networkNs;
        probe.peakBytesPerNs = bytes / expectedNs;
        probes.push_back(std::move(probe));
    }
    return probes;
}

std::vector<LinkSuspect> slowNetworkEdges(const Analysis& analysis, const std::vector<LinkProbe>& edges,
                                          const std::vector<const LinkProbe*>& open) {
    std::vector<LinkSuspect> result;
    if (std::ranges::none_of(edges, [](const LinkProbe& edge) { return !edge.slow(); })) return result;
    const LinkSuspects told = findSuspects(analysis, edges);
    std::vector<LinkSuspect> suspects = told.found;
    addPairs(told, suspects);
    std::ranges::stable_sort(suspects, std::ranges::greater(), worst);
    std::vector<const LinkProbe*> left = open;
    for (LinkSuspect& suspect : suspects) {
        suspect.betweenNodes = true;
        explainCollectives(analysis, left, suspect);
        if (!suspect.explains.empty()) result.push_back(std::move(suspect));
    }
    return result;
}

}  // namespace rankscope::job
