// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/facts/comm_usage.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/text/lists.h"

namespace rankscope::facts {
namespace {

struct SentMessage {
    int64_t communicatorId = 0;
    int64_t sentNs = 0;      // start of the send's kernel
    int64_t receivedNs = 0;  // end of the receive's, or of what is known
    int64_t readyNs = -1;    // start of the receive's kernel; -1 unknown
};

/// Holds the messages of one analysed step, by who sends to whom.
class MessageCounts {
  public:
    /// Reads the middle analysed step. Messages of a few bytes beside large ones (shapes, flags) are left out.
    MessageCounts(const TraceFacts& facts, std::span<const RankSummary> ranks) {
        for (const RankSummary& rank : ranks) {
            const RankFacts* known = facts.findRank(rank.rank);
            const int index = known != nullptr ? typicalStep(rank, *known) : -1;
            if (index < 0) continue;
            m_step = known->steps[static_cast<size_t>(index)].step;
            break;
        }
        int64_t largest = 0;
        for (const store::P2p& p2p : facts.pointToPoint) largest = std::max(largest, p2p.bytes.value_or(0));
        const int64_t limit = std::max(CommUsage::kTinyBytes, largest / CommUsage::kTinyShare);
        for (const store::P2p& p2p : facts.pointToPoint) {
            if (p2p.srcRank == p2p.dstRank) m_withOwn.insert(p2p.communicatorId);
            if (p2p.srcRank == p2p.dstRank || !p2p.sendArrivalNs || (p2p.bytes && *p2p.bytes <= limit)) continue;
            const RankFacts* sender = facts.findRank(p2p.srcRank);
            const StepWindow* step = sender == nullptr ? nullptr : stepAt(sender->steps, *p2p.sendArrivalNs);
            if (step == nullptr || step->step != m_step) continue;
            m_pairs[{p2p.srcRank, p2p.dstRank}].push_back({p2p.communicatorId, *p2p.sendArrivalNs,
                                                           p2p.recvEndNs.value_or(*p2p.sendArrivalNs),
                                                           p2p.recvArrivalNs.value_or(-1)});
        }
        for (auto& [pair, list] : m_pairs) {
            std::ranges::sort(list, {}, &SentMessage::sentNs);
            m_peers[pair.first].first.push_back(pair.second);
            m_peers[pair.second].second.push_back(pair.first);
        }
    }

    int step() const { return m_step; }
    /// Returns them by (source, destination), those of a pair by the time they were sent.
    const std::map<std::pair<int, int>, std::vector<SentMessage>>& pairs() const { return m_pairs; }

    const std::vector<SentMessage>& between(int src, int dst) const {
        static const std::vector<SentMessage> kNone;
        const auto at = m_pairs.find({src, dst});
        return at == m_pairs.end() ? kNone : at->second;
    }

    /// True when every message a sends to b leaves in the kernel that receives one from b: members exchange something,
    /// as in an all-to-all.
    bool atOnce(int a, int b) const {
        const std::vector<SentMessage>& out = between(a, b);
        const std::vector<SentMessage>& in = between(b, a);
        if (out.size() != in.size() || out.empty()) return false;
        std::set<int64_t> receives;  // kernels of rank a that receive from b, by their start
        for (const SentMessage& message : in) receives.insert(message.readyNs);
        return std::ranges::all_of(out, [&](const SentMessage& m) { return receives.count(m.sentNs) != 0; });
    }

    /// True when ranks of the communicator send to themselves, too: each sends its part to every member, as in an
    /// all-to-all. Where all parts but those for one member are empty, nothing else tells that from a pipeline.
    bool sendsToItself(int64_t communicatorId) const { return m_withOwn.contains(communicatorId); }

    /// True when the rank sends to one and receives from another one only.
    bool ring(int rank) const {
        const auto at = m_peers.find(rank);
        return at != m_peers.end() && at->second.first.size() == 1 && at->second.second.size() == 1 &&
               at->second.first != at->second.second;
    }

  private:
    int m_step = -1;
    std::set<int64_t> m_withOwn;  // communicators
    std::map<std::pair<int, int>, std::vector<SentMessage>> m_pairs;
    std::map<int, std::pair<std::vector<int>, std::vector<int>>> m_peers;  // rank: sends to, receives from
};

using Neighbours = std::map<int, std::set<int>>;  // undirected

/// Returns the ranks that are connected with `start`, in the order of a walk along unvisited neighbours. It is meant
/// for paths and rings.
std::vector<int> walk(const Neighbours& neighbours, int start) {
    std::vector<int> path{start};
    std::set<int> seen{start};
    for (int at = start;;) {
        const std::set<int>& around = neighbours.at(at);
        const auto next = std::ranges::find_if(around, [&](int rank) { return seen.count(rank) == 0; });
        if (next == around.end()) return path;
        path.push_back(at = *next);
        seen.insert(at);
    }
}

/// Returns a path from end to end, or a ring cut open where the fewest messages pass; empty for any other shape.
std::vector<int> openChain(const MessageCounts& messages, const Neighbours& neighbours, int start) {
    std::vector<int> path = walk(neighbours, start);
    size_t links = 0;
    for (int rank : path) links += neighbours.at(rank).size();
    const bool whole = std::ranges::all_of(path, [&](int rank) {
        const std::set<int>& around = neighbours.at(rank);
        return around.size() <= 2 && std::ranges::all_of(around, [&](int n) { return text::contains(path, n); });
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

/// True when the chain begins with the last stage: activations leave the first one before any gradient returns.
bool isReversed(const MessageCounts& messages, const std::vector<int>& chain) {
    const auto firstAt = [&](int src, int dst) {
        const std::vector<SentMessage>& sent = messages.between(src, dst);
        return sent.empty() ? INT64_MAX : sent.front().sentNs;
    };
    return firstAt(chain.back(), chain[chain.size() - 2]) < firstAt(chain[0], chain[1]);
}

/// Counts how often kernels that fill most of a rank's compute run in a step: all of them run as often for each
/// micro-batch and virtual stage.
std::vector<int> frequentCounts(std::span<const RankSummary> ranks, int rank, int step) {
    const auto at = std::ranges::find_if(ranks, [rank](const RankSummary& r) { return r.rank == rank; });
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
/// The kernels tell M: what runs per layer and micro-batch runs a multiple of V M times in a stage. Beside its layers
/// one of both has what only one of its virtual stages does, embedding or head: M times.
void splitTwoStages(std::span<const RankSummary> ranks, int step, int messages, Pipeline& pipeline) {
    const std::vector<int> first = frequentCounts(ranks, pipeline.stages[0], step),
                           last = frequentCounts(ranks, pipeline.stages[1], step);
    const auto multiplesOf = [](const std::vector<int>& counts, int of) {
        return std::ranges::all_of(counts, [of](int count) { return count % of == 0; });
    };
    pipeline.microBatches = messages;
    for (int v = 1; !first.empty() && !last.empty() && 2 * v - 1 <= messages && v <= 8; ++v) {
        if (messages % (2 * v - 1) != 0) continue;
        const int batches = messages / (2 * v - 1);
        if (!multiplesOf(first, batches) || !multiplesOf(last, batches)) continue;
        if (!multiplesOf(first, batches * v) && !multiplesOf(last, batches * v)) continue;
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
        std::ranges::count_if(sent, [firstBack](const SentMessage& m) { return m.receivedNs < firstBack; });
    return before < batches ? "1f1b" : "gpipe";
}

/// Reads counts, orientation and schedule of a chain.
Pipeline readChain(const MessageCounts& messages, std::span<const RankSummary> ranks, std::vector<int> chain) {
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

Exchanges findExchanges(const TraceFacts& facts, std::span<const RankSummary> ranks) {
    Exchanges exchanges;
    const MessageCounts messages(facts, ranks);
    Neighbours neighbours;
    for (const auto& [pair, list] : messages.pairs()) {
        const auto [a, b] = pair;
        const bool backToo = !messages.between(b, a).empty();
        CommUse& use = exchanges.roles[list.front().communicatorId];
        if (messages.atOnce(a, b) || messages.sendsToItself(list.front().communicatorId)) {
            use = {CommRole::experts, 0.7};
        } else if (backToo || !messages.ring(a)) {
            neighbours[a].insert(b);
            neighbours[b].insert(a);
            if (use.role == CommRole::unknown) use = {CommRole::pipeline, 0.9};
        }
    }
    std::set<int> used;
    // Ends of paths come first: a walk from the middle of a path would miss half of it.
    std::vector<int> starts;
    for (const auto& [rank, around] : neighbours) starts.push_back(rank);
    std::ranges::stable_partition(starts, [&](int rank) { return neighbours.at(rank).size() == 1; });
    for (int start : starts) {
        if (used.count(start) != 0) continue;
        const std::vector<int> chain = openChain(messages, neighbours, start);
        used.insert(start);
        if (chain.empty()) continue;
        used.insert(chain.begin(), chain.end());
        exchanges.pipelines.push_back(readChain(messages, ranks, chain));
    }
    std::ranges::sort(exchanges.pipelines, {}, &Pipeline::stages);
    return exchanges;
}

std::vector<Pipeline> toldPipelines(const TraceFacts& facts) {
    std::vector<Pipeline> pipelines;
    std::istringstream told(facts.text("told_pipelines", ""));
    std::string part;
    Pipeline alike;
    alike.confidence = 1;
    if (!std::getline(told, part, ';') || !(std::istringstream(part) >> alike.schedule >> alike.microBatches))
        return {};
    while (std::getline(told, part, ';')) {
        Pipeline& pipeline = pipelines.emplace_back(alike);
        std::istringstream ranks(part);
        for (int rank = 0; ranks >> rank;) pipeline.stages.push_back(rank);
    }
    std::erase_if(pipelines, [](const Pipeline& pipeline) { return pipeline.stages.size() < 2; });
    return pipelines;
}

}  // namespace rankscope::facts
