// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/pipeline_chains.h"

#include <algorithm>
#include <set>

namespace rankscope::gui {
namespace {

using Neighbours = std::map<int32_t, std::set<int32_t>>;  // undirected

// The k-th message one way and the k-th the other way are on their way at the same time, mostly.
bool passEachOther(const MessagePair& there, const MessagePair& back) {
    const size_t count = std::min(there.first.size(), back.first.size());
    size_t overlaps = 0;
    for (size_t i = 0; i < count; ++i)
        overlaps += there.first[i].beginNs < back.first[i].endNs && back.first[i].beginNs < there.first[i].endNs;
    return 2 * overlaps > count;
}

Neighbours neighboursOf(const MessagePairs& pairs) {
    Neighbours neighbours;
    for (const auto& [who, there] : pairs) {
        if (who.first > who.second) continue;
        const auto back = pairs.find({who.second, who.first});
        if (back == pairs.end() || passEachOther(there, back->second)) continue;
        neighbours[who.first].insert(who.second);
        neighbours[who.second].insert(who.first);
    }
    return neighbours;
}

PipelineChain walk(const Neighbours& neighbours, int32_t start, std::set<int32_t>& seen) {
    PipelineChain chain{start};
    seen.insert(start);
    for (;;) {
        const auto& around = neighbours.at(chain.back());
        const auto next =
            std::find_if(around.begin(), around.end(), [&](int32_t rank) { return !seen.contains(rank); });
        if (next == around.end()) return chain;
        seen.insert(*next);
        chain.push_back(*next);
    }
}

int64_t messagesBetween(const MessagePairs& pairs, int32_t a, int32_t b) {
    int64_t count = 0;
    for (const std::pair<int32_t, int32_t>& key : {std::pair{a, b}, std::pair{b, a}})
        if (const auto found = pairs.find(key); found != pairs.end()) count += found->second.count;
    return count;
}

// A ring is open where the fewest messages pass: an interleaved schedule goes round once less than it goes forth.
void openRing(const MessagePairs& pairs, PipelineChain& chain) {
    size_t cut = chain.size() - 1;
    for (size_t i = 0; i < chain.size(); ++i)
        if (messagesBetween(pairs, chain[i], chain[(i + 1) % chain.size()]) <
            messagesBetween(pairs, chain[cut], chain[(cut + 1) % chain.size()]))
            cut = i;
    std::rotate(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>((cut + 1) % chain.size()), chain.end());
}

int64_t firstSentNs(const MessagePairs& pairs, int32_t from, int32_t to) {
    const auto found = pairs.find({from, to});
    return found == pairs.end() || found->second.first.empty() ? INT64_MAX : found->second.first.front().beginNs;
}

}  // namespace

std::vector<PipelineChain> findPipelines(const MessagePairs& pairs) {
    const Neighbours neighbours = neighboursOf(pairs);
    std::set<int32_t> seen;
    std::vector<PipelineChain> chains;
    const auto degree = [&](int32_t rank) { return neighbours.at(rank).size(); };
    const auto take = [&](int32_t start, bool ring) {
        PipelineChain chain = walk(neighbours, start, seen);
        if (chain.size() < 2 || std::any_of(chain.begin(), chain.end(), [&](int32_t rank) { return degree(rank) > 2; }))
            return;
        if (ring && chain.size() > 2) openRing(pairs, chain);
        // Activations leave the first stage before any gradient returns.
        if (firstSentNs(pairs, chain.back(), chain[chain.size() - 2]) < firstSentNs(pairs, chain[0], chain[1]))
            std::reverse(chain.begin(), chain.end());
        chains.push_back(std::move(chain));
    };
    for (const auto& [rank, around] : neighbours)
        if (around.size() == 1 && !seen.contains(rank)) take(rank, false);
    for (const auto& [rank, around] : neighbours)
        if (!seen.contains(rank)) take(rank, true);
    std::sort(chains.begin(), chains.end());
    return chains;
}

}  // namespace rankscope::gui
