// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/edits/families.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/edits/resend.h"
#include "analyzer/edits/trial_graph.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {
namespace {

/// A collective of sharded layers on one rank.
struct Part {
    replay::TaskId arrival = replay::kNoTask;
    replay::TaskId transfer = replay::kNoTask;
    replay::TaskId call = replay::kNoTask;
    int64_t firstUse = -1;  // index into ComputeLane::kernels: the first that waits for it; -1: none does
    int64_t ready = -1;     // the last kernel it waits for
    int step = -1;
};

class Shards {
  public:
    Shards(const replay::TaskGraph& graph, const job::Analysis& analysis)
        : m_graph(graph), m_index(graph), m_draft(graph) {
        for (const replay::Exchange& exchange : graph.exchanges) {
            if (exchange.join == replay::kNoTask || exchange.members == 0) continue;
            const facts::CommRole role = analysis.layout.role(exchange.communicatorId, exchange.op);
            const bool gathers = role == facts::CommRole::shardedParameters && exchange.op == store::Op::allGather;
            const bool reduces = role == facts::CommRole::shardedParameters && exchange.op == store::Op::reduceScatter;
            const bool replicates = role == facts::CommRole::replicas && exchange.op == store::Op::allReduce;
            if (!gathers && !reduces && !replicates) continue;
            for (const replay::ExchangeMember& member : graph.membersOf(exchange))
                (gathers   ? m_gathers
                 : reduces ? m_reduces
                           : m_replicas)[member.rank]
                    .push_back({member.arrival, member.transfer, m_index.launchOf(member.arrival), -1, -1,
                                graph.info[member.arrival].step});
        }
        for (auto* all : {&m_gathers, &m_reduces, &m_replicas})
            for (auto& [rank, parts] : *all)
                std::ranges::sort(parts, [](const Part& a, const Part& b) { return a.arrival < b.arrival; });
        findUses();
    }

    bool empty() const { return m_gathers.empty(); }
    bool replicated() const { return !m_replicas.empty(); }

    /// Number of all-gathers that are issued earlier than before.
    int prefetch(int depth) {
        int moved = 0;
        for (const auto& [rank, gathers] : m_gathers) moved += prefetch(rank, gathers, depth);
        return moved;
    }

    /// Compute waits for reduced gradients when their buffer is needed again, two layers on; for sums over replicas
    /// when the step's compute is over.
    int releaseReductions() {
        int moved = 0;
        for (const auto& [rank, parts] : m_reduces) moved += release(rank, parts, true);
        for (const auto& [rank, parts] : m_replicas) moved += release(rank, parts, false);
        return moved;
    }

    replay::TaskGraph finish() && {
        m_draft.removeEdges([&](replay::TaskId to, const replay::Edge& edge) {
            const auto kind = static_cast<replay::WaitKind>(edge.kind);
            if (kind != replay::WaitKind::event) return false;
            return m_freed.count(to) != 0 || m_unawaited.count({to, edge.from}) != 0;
        });
        for (const auto& [to, from, delayNs] : m_added) m_draft.addEdge(to, from, replay::WaitKind::event, delayNs);
        std::optional<replay::TaskGraph> graph = std::move(m_draft).seal();
        if (!graph) throw EditError("issued that early, work would wait for itself");
        return std::move(*graph);
    }

  private:
    struct Wait {
        replay::TaskId to, from;
        int64_t delayNs;
    };

    void findUses() {
        std::vector<Part*> byTransfer(m_graph.size(), nullptr);
        for (auto* all : {&m_gathers, &m_reduces, &m_replicas})
            for (auto& [rank, parts] : *all)
                for (Part& part : parts) byTransfer[part.transfer] = &part;
        for (replay::TaskId task = 0; task < m_graph.size(); ++task) {
            const uint32_t lane = m_graph.info[task].lane;
            if (lane == replay::kNoLane) continue;
            const ComputeLane& compute = m_index.compute(m_graph.lanes[lane].rank);
            for (const replay::Edge& edge : m_graph.edgesOf(task)) {
                if (static_cast<replay::WaitKind>(edge.kind) != replay::WaitKind::event ||
                    byTransfer[edge.from] == nullptr || lane != compute.lane)
                    continue;
                const int64_t at = compute.find(task);
                if (at >= 0 && byTransfer[edge.from]->firstUse < 0) byTransfer[edge.from]->firstUse = at;
                m_delayNs = edge.delayNs;
            }
        }
        for (auto& [rank, parts] : m_gathers)
            for (Part& part : parts) {
                if (part.firstUse >= 0 || part.call == replay::kNoTask) continue;
                const ComputeLane& compute = m_index.compute(rank);
                const int64_t next = m_index.launchedBefore(compute, part.call);
                if (next < static_cast<int64_t>(compute.kernels.size())) part.firstUse = next;
            }
        for (auto* all : {&m_gathers, &m_reduces, &m_replicas})
            for (auto& [rank, parts] : *all)
                for (Part& part : parts)
                    for (const replay::Edge& edge : m_graph.edgesOf(part.arrival))
                        if (static_cast<replay::WaitKind>(edge.kind) == replay::WaitKind::event)
                            part.ready = std::max(part.ready, m_index.compute(rank).find(edge.from));
    }

    int prefetch(int rank, const std::vector<Part>& gathers, int depth) {
        const ComputeLane& compute = m_index.compute(rank);
        int moved = 0;
        for (size_t first = 0, last = 0; first < gathers.size(); first = last) {
            while (last < gathers.size() && gathers[last].step == gathers[first].step) ++last;
            for (size_t i = first + 1; i < last; ++i) {
                // The first layer's parameters come from the optimizer: it waits for it.
                const Part& gather = gathers[i];
                const size_t ahead = i - std::min<size_t>(static_cast<size_t>(depth), i - first);
                const replay::TaskId kernel = gathers[ahead].firstUse < 0
                                                  ? replay::kNoTask
                                                  : compute.kernels[static_cast<size_t>(gathers[ahead].firstUse)];
                if (kernel == replay::kNoTask || gather.call == replay::kNoTask || m_index.launched(gather.call) != 1 ||
                    m_index.launchOf(kernel) == replay::kNoTask)
                    throw EditError(fmt::format("rank {}: which layer an all-gather is for is not to be seen", rank),
                                    "only layers gathered by calls of their own can be prefetched");
                const replay::TaskId before = m_index.launchOf(kernel);
                // The buffer was used depth + 2 layers ago.
                const size_t user =
                    i >= first + static_cast<size_t>(depth) + 2 ? i - static_cast<size_t>(depth) - 1 : 0;
                const int64_t released = user > first ? gathers[user].firstUse - 1 : -1;
                if (gather.call < before && gather.ready <= std::max(released, gathers[first].ready)) continue;
                ++moved;
                if (gather.call > before) put(gather, before);
                m_freed.insert(gather.arrival);
                if (released >= 0)
                    m_added.push_back({gather.arrival, compute.kernels[static_cast<size_t>(released)], m_delayNs});
            }
        }
        return moved;
    }

    /// Calls the collective in front of the call `next`; its stream keeps the order of calls.
    void put(const Part& gather, replay::TaskId next) {
        m_draft.move(gather.call, m_draft.before(next));
        replay::TaskId onStream = m_draft.before(gather.arrival);
        const auto calledBehind = [&](replay::TaskId task) {
            return task < m_graph.size() && m_index.launchOf(task) != replay::kNoTask &&
                   m_index.launchOf(task) > next && m_moved.count(task) == 0;
        };
        while (onStream != replay::kNoTask && calledBehind(onStream)) onStream = m_draft.before(onStream);
        m_draft.move(gather.arrival, onStream);
        m_draft.move(gather.transfer, gather.arrival);
        m_moved.insert(gather.arrival);
        m_moved.insert(gather.transfer);
    }

    int release(int rank, const std::vector<Part>& parts, bool buffers) {
        const ComputeLane& compute = m_index.compute(rank);
        int moved = 0;
        for (size_t first = 0, last = 0; first < parts.size(); first = last) {
            while (last < parts.size() && parts[last].step == parts[first].step) ++last;
            for (size_t i = first; i + 1 < last; ++i) {
                const Part& part = parts[i];
                const int64_t next = buffers && i + 2 < last ? parts[i + 1].ready + 1 : parts[last - 1].firstUse;
                if (part.firstUse < 0 || next < 0 || part.firstUse >= next) continue;
                ++moved;
                m_unawaited.insert({compute.kernels[static_cast<size_t>(part.firstUse)], part.transfer});
                m_added.push_back({compute.kernels[static_cast<size_t>(next)], part.transfer, m_delayNs});
            }
        }
        return moved;
    }

    const replay::TaskGraph& m_graph;
    LaunchIndex m_index;
    replay::GraphDraft m_draft;
    std::map<int, std::vector<Part>> m_gathers, m_reduces, m_replicas;  // by rank, in order
    std::set<replay::TaskId> m_freed;  // all-gathers that wait for no compute but the added one
    std::set<std::pair<replay::TaskId, replay::TaskId>> m_unawaited;  // (kernel, transfer)
    std::set<replay::TaskId> m_moved;
    std::vector<Wait> m_added;
    int64_t m_delayNs = 0;
};

/// Fully sharded layers are gathered while earlier ones compute: the all-gather of a layer is called before the calls
/// of the layer `depth` uses ahead of it, and waits only for the buffer it goes into: depth + 2 layers are kept, the
/// one in use, the one being released, and those on their way.
void prefetchLayers(int depth, replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) {
    Shards shards(graph, analysis);
    if (shards.empty()) throw EditError("no parameters are sharded by layer", "prefetch is for FSDP and ZeRO-3");
    if (shards.prefetch(depth) == 0)
        throw EditError(fmt::format("layers are gathered {} ahead already", depth), "try a larger depth");
    graph = std::move(shards).finish();
    effect.assume(fmt::format("memory for {} gathered layers is there", depth + 2));
}

/// Communication leaves when its data are there, and compute waits for it only where it needs the result: buckets of
/// gradients during the backward pass, sharded parameters one layer ahead, sharded gradients behind the next layer's
/// backward pass.
void overlapAll(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) {
    Shards shards(graph, analysis);
    if (!shards.empty()) {
        const bool replicated = shards.replicated();
        const bool beside = replicated && besideReplicas(graph, analysis);
        const int moved = shards.releaseReductions() + shards.prefetch(1);
        if (moved == 0) throw EditError("sharded layers overlap with compute already");
        graph = std::move(shards).finish();
        effect.assume("memory for 3 gathered layers and the gradients of 2 is there");
        // Where they ran beside each other, their recorded times hold what that costs.
        if (beside)
            effect.assume("collectives inside and between nodes slow each other as before");
        else if (replicated)
            sharePorts(graph, analysis, effect);
        return;
    }
    graph = inBuckets(std::nullopt, true, TrialGraph(graph, analysis), effect);
}

}  // namespace

std::unique_ptr<Edit> parsePrefetch(EditArguments& arguments) {
    return editBy(prefetchLayers, arguments.whole("depth", 1).value_or(1));
}

std::unique_ptr<Edit> parseOverlap(EditArguments&) {
    return editBy(overlapAll);
}

}  // namespace rankscope::edits
