// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/pipelines.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "analyzer/facts/comm_usage.h"
#include "analyzer/facts/message_counts.h"

namespace rankscope::facts {
namespace {

using Neighbours = std::map<int, std::set<int>>;  // undirected

/// The ranks that hang together, in the order of a walk from `start` along unvisited neighbours. Meant for paths and
/// rings.
std::vector<int> walk(const Neighbours& neighbours, int start) {
    std::vector<int> path{start};
    std::set<int> seen{start};
    for (int at = start;;) {
        const std::set<int>& around = neighbours.at(at);
        const auto next = std::find_if(around.begin(), around.end(), [&](int rank) { return seen.count(rank) == 0; });
        if (next == around.end()) return path;
        path.push_back(at = *next);
        seen.insert(at);
    }
}

/// A path from end to end, or a ring cut open where the fewest messages pass; empty for any other shape.
std::vector<int> openChain(const MessageCounts& messages, const Neighbours& neighbours, int start) {
    std::vector<int> path = walk(neighbours, start);
    size_t links = 0;
    for (int rank : path) links += neighbours.at(rank).size();
    const bool whole = std::all_of(path.begin(), path.end(), [&](int rank) {
        const std::set<int>& around = neighbours.at(rank);
        return around.size() <= 2 && std::all_of(around.begin(), around.end(), [&](int n) {
                   return std::find(path.begin(), path.end(), n) != path.end();
               });
    });
    if (!whole || path.size() < 2) return {};
    if (links == 2 * (path.size() - 1)) return path;
    const auto both = [&](size_t i) {
        const int a = path[i], b = path[(i + 1) % path.size()];
        return messages.between(a, b).size() + messages.between(b, a).size();
    };
    size_t cut = 0;
    for (size_t i = 1; i < path.size(); ++i)
        if (both(i) < both(cut)) cut = i;
    std::rotate(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(cut + 1), path.end());
    return path;
}

/// Activations leave the first stage before any gradient returns.
bool isReversed(const MessageCounts& messages, const std::vector<int>& chain) {
    const auto firstAt = [&](int src, int dst) {
        const std::vector<SentMessage>& sent = messages.between(src, dst);
        return sent.empty() ? INT64_MAX : sent.front().sentNs;
    };
    return firstAt(chain.back(), chain[chain.size() - 2]) < firstAt(chain[0], chain[1]);
}

/// How often kernels that fill most of a rank's compute run in a step: all of them run as often for each micro-batch
/// and virtual stage.
std::vector<int> frequentCounts(const std::vector<RankSummary>& ranks, int rank, int step) {
    const auto at = std::find_if(ranks.begin(), ranks.end(), [rank](const RankSummary& r) { return r.rank == rank; });
    if (at == ranks.end()) return {};
    std::vector<std::pair<int64_t, int>> byTime;
    int64_t total = 0;
    for (const KernelStatistics& kernel : at->kernels) {
        if (kernel.step != step) continue;
        byTime.emplace_back(kernel.totalNs, kernel.count);
        total += kernel.totalNs;
    }
    std::sort(byTime.rbegin(), byTime.rend());
    std::vector<int> counts;
    int64_t covered = 0;
    for (const auto& [time, count] : byTime) {
        if (covered * 2 > total) break;  // half of the compute: surely layers, not the optimizer
        covered += time;
        counts.push_back(count);
    }
    return counts;
}

/// Two stages send V M activations one way and (V-1) M the other, as many gradients back: M (2V-1) in both directions.
/// The kernels tell M: what runs per layer and micro-batch runs a multiple of M times.
void splitTwoStages(const std::vector<RankSummary>& ranks, int step, int messages, Pipeline& pipeline) {
    std::vector<int> counts = frequentCounts(ranks, pipeline.stages[0], step);
    const std::vector<int> last = frequentCounts(ranks, pipeline.stages[1], step);
    counts.insert(counts.end(), last.begin(), last.end());
    pipeline.microBatches = messages;
    for (int v = 1; !counts.empty() && 2 * v - 1 <= messages && v <= 8; ++v) {
        if (messages % (2 * v - 1) != 0) continue;
        const int batches = messages / (2 * v - 1);
        if (!std::all_of(counts.begin(), counts.end(), [&](int count) { return count % (batches * v) == 0; })) continue;
        pipeline.microBatches = batches;
        pipeline.virtualStages = v;
        return;
    }
}

std::string scheduleOf(const MessageCounts& messages, const Pipeline& pipeline) {
    if (pipeline.virtualStages > 1) return "interleaved";
    const size_t stages = pipeline.stages.size();
    const int batches = pipeline.microBatches;
    if (batches < 2) return "unknown";
    // With more micro-batches than stages the first stage tells: GPipe sends all activations before the first gradient
    // returns, 1F1B one per stage. With fewer, the last stage: 1F1B returns the first gradient before it has received
    // everything.
    const bool many = batches > static_cast<int>(stages);
    const int here = many ? pipeline.stages[0] : pipeline.stages[stages - 2];
    const int next = many ? pipeline.stages[1] : pipeline.stages[stages - 1];
    const std::vector<SentMessage>& sent = messages.between(here, next);
    const std::vector<SentMessage>& returned = messages.between(next, here);
    if (returned.empty() || sent.empty()) return "unknown";
    const int64_t firstBack = returned.front().receivedNs;
    const auto before =
        std::count_if(sent.begin(), sent.end(), [firstBack](const SentMessage& m) { return m.receivedNs < firstBack; });
    if (before < batches) return "1f1b";
    return "gpipe";
}

/// Counts, orientation and schedule of a chain.
Pipeline readChain(const MessageCounts& messages, const std::vector<RankSummary>& ranks, std::vector<int> chain) {
    Pipeline pipeline;
    if (isReversed(messages, chain)) std::reverse(chain.begin(), chain.end());
    pipeline.stages = std::move(chain);
    const int first = pipeline.stages.front(), second = pipeline.stages[1], last = pipeline.stages.back();
    const int ahead = static_cast<int>(messages.between(first, second).size());
    const int back = static_cast<int>(messages.between(second, first).size());
    pipeline.confidence = back > 0 ? 0.9 : 0.5;
    if (pipeline.stages.size() == 2) {
        if (back > 0)
            splitTwoStages(ranks, messages.step(), ahead, pipeline);
        else
            pipeline.microBatches = ahead;
        if (pipeline.virtualStages > 1) pipeline.confidence = 0.7;
    } else {
        // Forward, V M activations go to the next stage; from the last stage (V-1) M go back to the first for their
        // next virtual stage.
        const int around = static_cast<int>(messages.between(last, first).size());
        pipeline.microBatches = ahead - around;
        if (around > 0 && (pipeline.microBatches <= 0 || ahead % pipeline.microBatches != 0)) {
            pipeline.microBatches = 0;
            pipeline.confidence = 0.4;
            return pipeline;
        }
        pipeline.virtualStages = pipeline.microBatches > 0 ? ahead / pipeline.microBatches : 1;
    }
    pipeline.schedule = scheduleOf(messages, pipeline);
    return pipeline;
}

}  // namespace

double Pipeline::theoreticalBubble() const {
    const double others = static_cast<double>(stages.size()) - 1;
    return microBatches > 0 ? others / (microBatches * virtualStages + others) : 0;
}

Exchanges findExchanges(const TraceFacts& facts, const std::vector<RankSummary>& ranks) {
    Exchanges exchanges;
    const MessageCounts messages(facts, ranks);
    Neighbours neighbours;
    for (const auto& [pair, list] : messages.pairs()) {
        const auto [a, b] = pair;
        const bool backToo = !messages.between(b, a).empty();
        CommUse& use = exchanges.roles[list.front().communicatorId];
        if (messages.atOnce(a, b)) {
            use = {CommRole::experts, 0.7};
        } else if (backToo || !messages.ring(a)) {
            neighbours[a].insert(b);
            neighbours[b].insert(a);
            if (use.role == CommRole::unknown) use = {CommRole::pipeline, 0.9};
        }
    }
    std::set<int> used;
    // Ends of paths first: a walk from the middle of a path would miss half of it.
    std::vector<int> starts;
    for (const auto& [rank, around] : neighbours)
        if (around.size() == 1) starts.push_back(rank);
    for (const auto& [rank, around] : neighbours)
        if (around.size() != 1) starts.push_back(rank);
    for (int start : starts) {
        if (used.count(start) != 0) continue;
        const std::vector<int> chain = openChain(messages, neighbours, start);
        used.insert(start);
        if (chain.empty()) continue;
        used.insert(chain.begin(), chain.end());
        exchanges.pipelines.push_back(readChain(messages, ranks, chain));
    }
    std::sort(exchanges.pipelines.begin(), exchanges.pipelines.end(),
              [](const Pipeline& a, const Pipeline& b) { return a.stages < b.stages; });
    return exchanges;
}

}  // namespace rankscope::facts
