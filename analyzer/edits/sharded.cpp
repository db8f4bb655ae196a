// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyzer/edits/beside_compute.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/edits/resend.h"
#include "analyzer/edits/trial_graph.h"

namespace rankscope::edits {
namespace {

/// A collective of sharded layers on one rank.
struct Part {
    TaskId arrival = kNoTask;
    TaskId transfer = kNoTask;
    TaskId call = kNoTask;
    int64_t firstUse = -1;    // index into ComputeLane::kernels: the first that waits for it; -1: none does
    TaskId waiter = kNoTask;  // what waits for it: that kernel, or a copy in front of it
    int64_t ready = -1;       // the last kernel it waits for
    int step = -1;
};

class Shards {
  public:
    Shards(const TaskGraph& graph, const Analysis& analysis) : m_graph(graph), m_index(graph), m_draft(graph) {
        for (const Exchange& exchange : graph.exchanges) {
            auto* of = isSumOfReplicas(analysis, exchange)   ? &m_replicas
                       : !isOfShards(analysis, exchange)     ? nullptr
                       : exchange.op == store::Op::allGather ? &m_gathers
                                                             : &m_reduces;
            if (exchange.join == kNoTask || of == nullptr) continue;
            for (const ExchangeMember& member : graph.membersOf(exchange)) {
                m_called[member.arrival] = {exchange.communicatorId, m_index.launchOf(member.arrival), member.arrival,
                                            member.transfer};
                (*of)[member.rank].push_back({member.arrival, member.transfer, m_index.launchOf(member.arrival), -1,
                                              kNoTask, -1, graph.info[member.arrival].step});
            }
        }
        for (auto* all : {&m_gathers, &m_reduces, &m_replicas})
            for (auto& [rank, parts] : *all) std::ranges::sort(parts, {}, &Part::arrival);
        findUses();
    }

    bool empty() const { return m_gathers.empty(); }
    /// All-gathers of all ranks.
    int gathers() const {
        size_t count = 0;
        for (const auto& [rank, gathers] : m_gathers) count += gathers.size();
        return static_cast<int>(count);
    }
    bool replicated() const { return !m_replicas.empty(); }

    /// What of an all-gather can change: when it is called, or also what its stream waits for then.
    enum class Ahead : uint8_t { calls, callsAndWaits };

    /// Number of all-gathers that are issued earlier than before. `held`: each waits until its buffer is free.
    int prefetch(int depth, Ahead what, bool held = true) {
        m_held = held;
        int moved = 0;
        for (const auto& [rank, gathers] : m_gathers) moved += prefetch(rank, gathers, depth, what);
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

    TaskGraph finish() && {
        m_draft.removeEdges([&](TaskId to, const Edge& edge) {
            return edge.kind == WaitKind::event && (m_freed.contains(to) || m_unawaited.contains({to, edge.from}));
        });
        keepOrder();
        for (const auto& [to, from] : m_added) m_draft.addEdge(to, from, WaitKind::event, m_delayNs);
        return sealed(std::move(m_draft), "issued that early, work would wait for itself");
    }

  private:
    void findUses() {
        std::vector<Part*> byTransfer(m_graph.size(), nullptr);
        for (auto* all : {&m_gathers, &m_reduces, &m_replicas})
            for (auto& [rank, parts] : *all)
                for (Part& part : parts) byTransfer[part.transfer] = &part;
        for (TaskId task = 0; task < m_graph.size(); ++task) {
            const uint32_t lane = m_graph.info[task].lane;
            if (lane == kNoLane) continue;
            const ComputeLane& compute = m_index.compute(m_graph.lanes[lane].rank);
            if (lane != compute.lane) continue;
            for (const Edge& edge : m_graph.edgesOf(task, WaitKind::event)) {
                if (byTransfer[edge.from] == nullptr) continue;
                // FSDP2 first copies where the gathered parameters go to.
                const int64_t at = compute.findFrom(task);
                if (at >= 0 && byTransfer[edge.from]->firstUse < 0) {
                    byTransfer[edge.from]->firstUse = at;
                    byTransfer[edge.from]->waiter = task;
                }
                m_delayNs = edge.delayNs;
            }
        }
        for (auto& [rank, parts] : m_gathers)
            for (Part& part : parts) {
                if (part.firstUse >= 0 || part.call == kNoTask) continue;
                const ComputeLane& compute = m_index.compute(rank);
                const int64_t next = m_index.launchedBefore(compute, part.call);
                if (next < static_cast<int64_t>(compute.kernels.size())) part.firstUse = next;
            }
        for (auto* all : {&m_gathers, &m_reduces, &m_replicas})
            for (auto& [rank, parts] : *all)
                for (Part& part : parts)
                    for (const Edge& edge : m_graph.edgesOf(part.arrival, WaitKind::event))
                        part.ready = std::max(part.ready, m_index.compute(rank).find(edge.from));
    }

    int prefetch(int rank, const std::vector<Part>& gathers, int depth, Ahead what) {
        const ComputeLane& compute = m_index.compute(rank);
        int moved = 0;
        for (size_t first = 0, last = 0; first < gathers.size(); first = last) {
            while (last < gathers.size() && gathers[last].step == gathers[first].step) ++last;
            for (size_t i = first + 1; i < last; ++i) {
                // The first layer's parameters come from the optimizer: it waits for it.
                const Part& gather = gathers[i];
                const size_t ahead = i - std::min<size_t>(static_cast<size_t>(depth), i - first);
                const TaskId kernel = gathers[ahead].firstUse < 0 ? kNoTask : compute.at(gathers[ahead].firstUse);
                if (kernel == kNoTask || gather.call == kNoTask || m_index.launched(gather.call) != 1 ||
                    m_index.launchOf(kernel) == kNoTask)
                    throw EditError(fmt::format("rank {}: which layer an all-gather is for is not to be seen", rank),
                                    "only layers gathered by calls of their own can be prefetched");
                const TaskId before = m_index.launchOf(kernel);
                // The buffer was used depth + 2 layers ago.
                const size_t user =
                    i >= first + static_cast<size_t>(depth) + 2 ? i - static_cast<size_t>(depth) - 1 : 0;
                const int64_t released = m_held && user > first ? gathers[user].firstUse - 1 : -1;
                if (what == Ahead::calls && isCalledAhead(gathers[ahead], gather, compute)) continue;
                if (gather.call < before && gather.ready <= std::max(released, gathers[first].ready)) continue;
                ++moved;
                if (gather.call > before) put(gather, before);
                m_freed.insert(gather.arrival);
                if (released >= 0) m_added.emplace_back(gather.arrival, compute.at(released));
            }
        }
        return moved;
    }

    /// Most of what is launched from the first use of `earlier` to that of `gather` is launched behind its call: it is
    /// called while the layers in between begin, not when its own is due. FSDP2 calls it behind the first kernel of the
    /// layer before it, which copies that one's parameters out of the buffer.
    bool isCalledAhead(const Part& earlier, const Part& gather, const ComputeLane& compute) const {
        const int64_t called = m_index.launchedBefore(compute, gather.call);
        return 2 * (gather.firstUse - called) > gather.firstUse - earlier.firstUse;
    }

    /// NCCL runs the kernels of a communicator in the order of their calls, on whatever streams, where the graph says
    /// so by waits between them. What is freed of its waits gets those of its new place.
    void keepOrder() {
        std::map<std::pair<int, uint32_t>, std::vector<Called>> communicators;
        std::map<TaskId, uint32_t> byTransfer;
        for (const auto& [arrival, called] : m_called) byTransfer.emplace(called.transfer, called.communicatorId);
        std::set<std::pair<int, uint32_t>> ordered;
        for (const auto& [arrival, called] : m_called) {
            if (called.call == kNoTask) continue;
            const std::pair key(m_graph.lanes[m_graph.info[arrival].lane].rank, called.communicatorId);
            communicators[key].push_back(called);
            for (const Edge& edge : m_graph.edgesOf(arrival, WaitKind::event)) {
                const auto from = byTransfer.find(edge.from);
                if (from != byTransfer.end() && from->second == called.communicatorId) ordered.insert(key);
            }
        }
        for (const auto& key : ordered) {
            std::vector<Called>& calls = communicators.at(key);
            std::ranges::stable_sort(calls, {}, &Called::call);
            for (size_t i = 1; i < calls.size(); ++i)
                if (m_freed.contains(calls[i - 1].arrival) || m_freed.contains(calls[i].arrival))
                    m_added.emplace_back(calls[i].arrival, calls[i - 1].transfer);
        }
    }

    /// Calls the collective in front of the call `next`; its stream keeps the order of calls.
    void put(const Part& gather, TaskId next) {
        m_draft.move(gather.call, m_draft.before(next));
        m_called.at(gather.arrival).call = next;
        TaskId onStream = m_draft.before(gather.arrival);
        const auto calledBehind = [&](TaskId task) {
            return task < m_graph.size() && m_index.launchOf(task) != kNoTask && m_index.launchOf(task) > next &&
                   m_moved.count(task) == 0;
        };
        while (onStream != kNoTask && calledBehind(onStream)) onStream = m_draft.before(onStream);
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
                if (part.waiter == kNoTask || next < 0 || part.firstUse >= next) continue;
                ++moved;
                m_unawaited.insert({part.waiter, part.transfer});
                m_added.emplace_back(compute.at(next), part.transfer);
            }
        }
        return moved;
    }

    const TaskGraph& m_graph;
    LaunchIndex m_index;
    GraphDraft m_draft;
    std::map<int, std::vector<Part>> m_gathers, m_reduces, m_replicas;  // by rank, in order
    struct Called {
        uint32_t communicatorId = 0;
        TaskId call = kNoTask;
        TaskId arrival = kNoTask, transfer = kNoTask;
    };
    std::map<TaskId, Called> m_called;  // by arrival
    bool m_held = true;
    std::set<TaskId> m_freed;                         // all-gathers that wait for no compute but the added one
    std::set<std::pair<TaskId, TaskId>> m_unawaited;  // (kernel, transfer)
    std::set<TaskId> m_moved;
    std::vector<std::pair<TaskId, TaskId>> m_added;  // who then waits for whom
    int64_t m_delayNs = 0;                           // of such a wait
};

/// Of all all-gathers, so many must be called earlier. A forward or a backward pass that is not prefetched has about
/// half of them: where less than half of that is late, layers are prefetched, and what is left no setting reaches.
constexpr double kFewestMoved = 0.25;

/// Fully sharded layers are gathered while earlier ones compute: the all-gather of a layer is called before the calls
/// of the layer `depth` uses ahead of it, and waits only for the buffer it goes into: depth + 2 layers are kept, the
/// one in use, the one being released, and those on their way. One that is called that early already is left alone:
/// what it then waits for is the framework's own bound on memory, which no setting of the depth lifts.
void prefetchLayers(int depth, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    Shards shards(graph, analysis);
    if (shards.empty()) throw EditError("no parameters are sharded by layer", "prefetch is for FSDP and ZeRO-3");
    const int moved = shards.prefetch(depth, Shards::Ahead::calls, effect.outlook != Outlook::cheap);
    if (moved < kFewestMoved * shards.gathers())
        throw EditError(fmt::format("layers are gathered {} ahead already", depth),
                        "try a larger depth; the first layers of a micro-step, which a framework gathers where that "
                        "begins, no setting gathers earlier");
    effect.open = true;
    const BesideCompute besideCompute(graph, analysis);
    graph = std::move(shards).finish();
    besideCompute.reprice(graph, effect);
    effect.assume(
        fmt::format("memory for {} gathered layers is there; at best an all-gather waits for none of it", depth + 2));
}

/// Communication leaves when its data are there, and compute waits for it only where it needs the result: buckets of
/// gradients during the backward pass, sharded parameters one layer ahead, sharded gradients behind the next layer's
/// backward pass.
void overlapAll(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    Shards shards(graph, analysis);
    if (!shards.empty()) {
        const bool replicated = shards.replicated();
        const bool beside = replicated && besideReplicas(graph, analysis);
        const int moved = shards.releaseReductions() + shards.prefetch(1, Shards::Ahead::callsAndWaits);
        if (moved == 0) throw EditError("sharded layers overlap with compute already");
        const BesideCompute besideCompute(graph, analysis);
        graph = std::move(shards).finish();
        besideCompute.reprice(graph, effect);
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
