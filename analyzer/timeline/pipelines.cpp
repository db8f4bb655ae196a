// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "analyzer/timeline/layout.h"

namespace rankscope::analyzer {
namespace {

using Edges = std::map<int, std::set<int>>;  // undirected

/// The chain that starts at an end rank; empty when it is no simple path.
std::vector<int> followChain(const Edges& edges, int end) {
    std::vector<int> chain{end};
    int previous = -1;
    for (int at = end;;) {
        int next = -1;
        for (int neighbour : edges.at(at)) {
            if (neighbour == previous) continue;
            if (next >= 0) return {};
            next = neighbour;
        }
        if (next < 0) return chain;
        if (std::find(chain.begin(), chain.end(), next) != chain.end()) return {};
        chain.push_back(next);
        previous = at;
        at = next;
    }
}


bool inStep(const RankFacts& rank, int64_t timeNs, int step) {
    return std::any_of(rank.steps.begin(), rank.steps.end(), [&](const StepWindow& s) {
        return s.step == step && s.startNs <= timeNs && timeNs < s.startNs + s.durNs;
    });
}

/// Sorted times of the transfers src -> dst that are sent in a step.
std::vector<int64_t> transfers(const TraceFacts& facts, int src, int dst, int step) {
    std::vector<int64_t> times;
    const RankFacts* sender = facts.findRank(src);
    for (const store::P2p& p2p : facts.pointToPoint) {
        if (p2p.srcRank != src || p2p.dstRank != dst || !p2p.sendArrivalNs || sender == nullptr) continue;
        if (inStep(*sender, *p2p.sendArrivalNs, step)) times.push_back(p2p.recvEndNs.value_or(*p2p.sendArrivalNs));
    }
    std::sort(times.begin(), times.end());
    return times;
}

std::string scheduleOf(const TraceFacts& facts, const Pipeline& pipeline, int step) {
    const int stages = static_cast<int>(pipeline.stages.size());
    const int batches = pipeline.microBatches;
    if (batches < 2) return "unknown";
    // With more micro-batches than stages the first stage tells: GPipe sends all activations before the first gradient returns, 1F1B one per stage.
    // With fewer, the last stage: 1F1B returns the first gradient before it has received everything.
    const auto sent = transfers(facts, pipeline.stages[0], pipeline.stages[1], step);
    const auto returned = transfers(facts, pipeline.stages[1], pipeline.stages[0], step);
    if (returned.empty() || sent.empty()) return "unknown";
    if (batches > stages) {
        const auto before = std::lower_bound(sent.begin(), sent.end(), returned.front()) - sent.begin();
        return before >= batches ? "gpipe" : "1f1b";
    }
    const auto received = transfers(facts, pipeline.stages[stages - 2], pipeline.stages[stages - 1], step);
    const auto first = transfers(facts, pipeline.stages[stages - 1], pipeline.stages[stages - 2], step);
    if (first.empty()) return "unknown";
    const auto before = std::lower_bound(received.begin(), received.end(), first.front()) - received.begin();
    return before >= batches ? "unknown" : "1f1b";
}

}  // namespace

double Pipeline::theoreticalBubble() const {
    const double others = static_cast<double>(stages.size()) - 1;
    return microBatches > 0 ? others / (microBatches * virtualStages + others) : 0;
}

std::vector<Pipeline> findPipelines(const TraceFacts& facts, const std::vector<RankSummary>& /*ranks*/) {
    Edges edges;
    for (const store::P2p& p2p : facts.pointToPoint) {
        if (p2p.srcRank == p2p.dstRank) continue;
        edges[p2p.srcRank].insert(p2p.dstRank);
        edges[p2p.dstRank].insert(p2p.srcRank);
    }
    std::vector<Pipeline> pipelines;
    std::set<int> used;
    int step = -1;  // one analysed step is enough to count in
    for (const RankFacts& rank : facts.ranks)
        for (const StepWindow& window : rank.steps)
            if (step < 0 && !window.warmUp) step = window.step;
    for (const auto& [rank, neighbours] : edges) {
        if (neighbours.size() != 1 || used.count(rank) != 0) continue;
        Pipeline pipeline;
        pipeline.stages = followChain(edges, rank);
        if (pipeline.stages.size() < 2) continue;
        used.insert(pipeline.stages.begin(), pipeline.stages.end());
        // The first stage sends before it receives.
        const auto ahead = transfers(facts, pipeline.stages[0], pipeline.stages[1], step);
        const auto back = transfers(facts, pipeline.stages[1], pipeline.stages[0], step);
        if (ahead.empty() && back.empty()) continue;
        const bool reversed = ahead.empty() || (!back.empty() && back.front() < ahead.front());
        if (reversed) std::reverse(pipeline.stages.begin(), pipeline.stages.end());
        pipeline.microBatches = static_cast<int>(reversed ? back.size() : ahead.size());
        pipeline.schedule = scheduleOf(facts, pipeline, step);
        pipelines.push_back(pipeline);
    }
    return pipelines;
}

}  // namespace rankscope::analyzer
