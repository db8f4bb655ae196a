// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/graph_changes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {
namespace {

/// One side of a message.
struct Side {
    replay::TaskId transfer = replay::kNoTask;
    replay::TaskId peerArrival = replay::kNoTask;
    uint32_t exchange = 0;
    bool sends = false;
};

/// Messages that join their two kernels by edges, by transfer and peer.
std::vector<Side> sidesOf(const replay::TaskGraph& graph) {
    std::vector<Side> sides;
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
        const replay::Exchange& exchange = graph.exchanges[i];
        if (!exchange.message() || exchange.grouped || exchange.members != 2) continue;
        const auto members = graph.membersOf(exchange);
        for (size_t m = 0; m < 2; ++m)
            if (members[m].transfer != replay::kNoTask)
                sides.push_back({members[m].transfer, members[1 - m].arrival, i, m == 0});
    }
    std::ranges::sort(sides, [](const Side& a, const Side& b) {
        return std::tie(a.transfer, a.peerArrival, a.exchange) < std::tie(b.transfer, b.peerArrival, b.exchange);
    });
    return sides;
}

std::span<replay::Edge> edgesOf(replay::TaskGraph& graph, replay::TaskId task) {
    return {graph.edges.data() + graph.firstEdge[task], graph.edges.data() + graph.firstEdge[task + 1]};
}

bool waitsForPeer(const replay::Edge& edge) {
    return edge.kind == static_cast<uint32_t>(replay::WaitKind::peer);
}

/// The messages with one peer, and what they take.
struct PeerPart {
    TransferTask transfer;
    replay::TaskId peerArrival = replay::kNoTask;
    int64_t ns = 0;
};

void change(replay::TaskGraph& graph, std::span<const Side> sides, int rank, const TransferTime& newNs) {
    const replay::TaskId task = sides.front().transfer;
    std::vector<PeerPart> parts;
    for (const Side& side : sides) {
        const replay::Exchange& exchange = graph.exchanges[side.exchange];
        if (parts.empty() || parts.back().peerArrival != side.peerArrival)
            parts.push_back({{task, side.exchange, 0, 0, rank}, side.peerArrival, 0});
        TransferTask& part = parts.back().transfer;
        (side.sends ? part.bytesOut : part.bytesIn) += std::max<int64_t>(0, exchange.bytes);
        if (exchange.bytes > graph.exchanges[part.exchange].bytes) part.exchange = side.exchange;
    }
    int64_t shortest = INT64_MAX, longest = 0;
    for (PeerPart& part : parts) {
        int64_t longer = 0;
        for (const replay::Edge& edge : edgesOf(graph, task))
            if (waitsForPeer(edge) && edge.from == part.peerArrival) longer = std::max<int64_t>(longer, edge.delayNs);
        part.ns = newNs(part.transfer, graph.exchanges[part.transfer.exchange], graph.durationNs[task] + longer);
        shortest = std::min(shortest, part.ns);
        longest = std::max(longest, part.ns);
    }
    graph.durationNs[task] = shortest;
    graph.leadNs[task] = static_cast<uint32_t>(std::min(longest - shortest, replay::Edge::kLongestDelayNs));
    for (const PeerPart& part : parts)
        for (replay::Edge& edge : edgesOf(graph, task))
            if (waitsForPeer(edge) && edge.from == part.peerArrival)
                edge.delayNs = static_cast<uint32_t>(std::min(part.ns - shortest, replay::Edge::kLongestDelayNs)) &
                               ((1U << 27) - 1);
}

}  // namespace

void changeTransfers(replay::TaskGraph& graph, const TransferTime& newNs) {
    const std::vector<Side> sides = sidesOf(graph);
    auto first = sides.begin();
    for (const TransferTask& transfer : transferTasks(graph)) {
        while (first != sides.end() && first->transfer < transfer.task) ++first;
        auto last = first;
        while (last != sides.end() && last->transfer == transfer.task) ++last;
        if (first != last)
            change(graph, {first, last}, transfer.rank, newNs);
        else
            graph.durationNs[transfer.task] =
                newNs(transfer, graph.exchanges[transfer.exchange], graph.durationNs[transfer.task]);
        first = last;
    }
}

void removeExchange(replay::Exchange& exchange) {
    exchange.members = 0;
    exchange.join = replay::kNoTask;
    exchange.bytes = 0;
}

void joinCollective(replay::GraphDraft& draft, const replay::TaskInfo& info, replay::Exchange exchange,
                    const std::vector<replay::ExchangeMember>& members) {
    exchange.join = draft.addTask(info, 0);
    const uint32_t number = draft.addExchange(exchange, members);
    draft.info(exchange.join).detail = number;
    for (const replay::ExchangeMember& member : members) {
        draft.info(member.arrival).detail = draft.info(member.transfer).detail = number;
        draft.addEdge(exchange.join, member.arrival, replay::WaitKind::peer);
        draft.addEdge(member.transfer, exchange.join, replay::WaitKind::peer);
    }
}

void scaleTransfer(replay::TaskGraph& graph, replay::TaskId transfer, double factor) {
    graph.durationNs[transfer] = scaledNs(graph.durationNs[transfer], factor);
    graph.leadNs[transfer] = static_cast<uint32_t>(scaledNs(graph.leadNs[transfer], factor));
    for (replay::Edge& edge : edgesOf(graph, transfer))
        if (waitsForPeer(edge)) edge.delayNs = static_cast<uint32_t>(scaledNs(edge.delayNs, factor)) & ((1U << 27) - 1);
}

namespace {

/// Of a stream: first of its tasks of each step.
using StepBegins = std::map<int, replay::TaskId>;

std::vector<StepBegins> stepBegins(const replay::TaskGraph& graph) {
    std::vector<StepBegins> begins(graph.lanes.size());
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        const replay::TaskInfo& info = graph.info[task];
        if (info.lane != replay::kNoLane && info.step >= 0) begins[info.lane].try_emplace(info.step, task);
    }
    return begins;
}

std::optional<replay::Edge> launchOf(const replay::TaskGraph& graph, replay::TaskId task) {
    for (const replay::Edge& edge : graph.edgesOf(task))
        if (static_cast<replay::WaitKind>(edge.kind) == replay::WaitKind::launch) return edge;
    return std::nullopt;
}

/// What copies are for: the last of a step and of a stream.
using LastCopies = std::map<std::pair<uint32_t, int>, replay::TaskId>;  // by lane they were on, and step

/// The device has begun a step when the copies for it are there, too.
void keepMarksWaiting(const replay::TaskGraph& graph, const LastCopies& last, replay::GraphDraft& draft) {
    std::map<std::pair<int, int>, replay::TaskId> ofStep;  // by rank and step
    for (const auto& [where, copy] : last) {
        replay::TaskId& latest = ofStep.try_emplace({graph.lanes[where.first].rank, where.second}, copy).first->second;
        latest = std::max(latest, copy);
    }
    for (const replay::StepMark& mark : graph.marks) {
        const int done = mark.closes ? mark.step : mark.step - 1;
        if (const auto copy = ofStep.find({mark.rank, done}); copy != ofStep.end())
            draft.addEdge(mark.task, copy->second, replay::WaitKind::mark);
    }
}

}  // namespace

void putAside(replay::TaskGraph& graph, const CopiesAside& copies) {
    const std::vector<StepBegins> begins = stepBegins(graph);
    replay::GraphDraft draft(graph);
    std::map<int, uint32_t> streams;  // by rank
    LastCopies last;
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        const auto copy = copies.find(task);
        if (copy == copies.end()) continue;
        const std::optional<replay::Edge> launch = launchOf(graph, task);
        if (!launch) {
            draft.durationNs(task) = copy->second;
            continue;
        }
        replay::TaskInfo info = graph.info[task];
        const uint32_t place = info.lane;
        const replay::Lane& from = graph.lanes[place];
        const auto [stream, isNew] = streams.try_emplace(from.rank, 0);
        if (isNew) stream->second = draft.addLane(from);
        info.lane = stream->second & replay::kNoLane;
        const replay::TaskId aside = draft.addTask(info, copy->second);
        last[{place, info.step}] = aside;
        draft.addEdge(aside, launch->from, replay::WaitKind::launch, launch->delayNs, launch->afterStart);
        draft.durationNs(task) = 0;
        draft.leadNs(task) = 0;
    }
    for (const auto& [where, copy] : last) {
        const auto next = begins[where.first].upper_bound(where.second);
        if (next != begins[where.first].end()) draft.addEdge(next->second, copy, replay::WaitKind::event);
    }
    keepMarksWaiting(graph, last, draft);
    std::optional<replay::TaskGraph> sealed = std::move(draft).seal();
    if (!sealed) throw EditError("beside compute these copies would wait for themselves");
    graph = std::move(*sealed);
}

}  // namespace rankscope::edits
