// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/graph_changes.h"

#include <algorithm>
#include <map>
#include <numeric>
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
    TaskId transfer = kNoTask;
    TaskId peerArrival = kNoTask;
    uint32_t exchange = 0;
    bool sends = false;
};

/// Messages that join their two kernels by edges, by transfer and peer.
std::vector<Side> sidesOf(const TaskGraph& graph) {
    const auto forEachSide = [&graph](const auto& take) {
        for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
            const Exchange& exchange = graph.exchanges[i];
            if (!exchange.message() || exchange.grouped || exchange.members != 2) continue;
            const auto members = graph.membersOf(exchange);
            for (size_t m = 0; m < 2; ++m) take(Side{members[m].transfer, members[1 - m].arrival, i, m == 0});
        }
    };
    // A transfer has few: they are put behind each other by it, and sorted by themselves.
    std::vector<uint32_t> ends(graph.size() + 1);
    forEachSide([&](const Side& side) { ++ends[side.transfer + 1]; });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<Side> sides(ends.back());
    forEachSide([&](const Side& side) { sides[ends[side.transfer]++] = side; });
    for (size_t task = 0, first = 0; task < graph.size(); first = ends[task++])
        std::sort(sides.begin() + static_cast<std::ptrdiff_t>(first), sides.begin() + ends[task],
                  [](const Side& a, const Side& b) {
                      return std::tie(a.peerArrival, a.exchange) < std::tie(b.peerArrival, b.exchange);
                  });
    return sides;
}

/// Sets the delays of the edges from peers to a transfer to newNs(edge), ns. A copy of a graph goes on sharing its
/// edges where none really changes.
template <typename NewNs>
void setDelays(TaskGraph& graph, TaskId transfer, const NewNs& newNs) {
    for (uint32_t e = graph.firstEdge[transfer]; e < graph.firstEdge[transfer + 1]; ++e) {
        Edge edge = graph.edges[e];
        if (edge.kind != WaitKind::peer) continue;
        edge.setDelay(newNs(edge));
        if (edge.delayNs != graph.edges[e].delayNs) graph.edges.own(e) = edge;
    }
}

/// The messages with one peer, and what they take.
struct PeerPart {
    TransferTask transfer;
    TaskId peerArrival = kNoTask;
    int64_t ns = 0;
};

void change(TaskGraph& graph, std::span<const Side> sides, int rank, const TransferTime& newNs) {
    const TaskId task = sides.front().transfer;
    std::vector<PeerPart> parts;
    for (const Side& side : sides) {
        const Exchange& exchange = graph.exchanges[side.exchange];
        if (parts.empty() || parts.back().peerArrival != side.peerArrival)
            parts.push_back({{task, side.exchange, 0, 0, rank}, side.peerArrival, 0});
        TransferTask& part = parts.back().transfer;
        (side.sends ? part.bytesOut : part.bytesIn) += std::max<int64_t>(0, exchange.bytes);
        if (exchange.bytes > graph.exchanges[part.exchange].bytes) part.exchange = side.exchange;
    }
    int64_t shortest = INT64_MAX, longest = 0;
    for (PeerPart& part : parts) {
        int64_t longer = 0;
        for (const Edge& edge : graph.edgesOf(task, WaitKind::peer))
            if (edge.from == part.peerArrival) longer = std::max<int64_t>(longer, edge.delayNs);
        part.ns = newNs(part.transfer, graph.exchanges[part.transfer.exchange], graph.durationNs[task] + longer);
        shortest = std::min(shortest, part.ns);
        longest = std::max(longest, part.ns);
    }
    graph.durationNs[task] = shortest;
    graph.leadNs[task] = static_cast<uint32_t>(std::min(longest - shortest, Edge::kLongestDelayNs));
    setDelays(graph, task, [&](const Edge& edge) -> int64_t {
        const auto part = std::ranges::find(parts, edge.from, &PeerPart::peerArrival);
        return part == parts.end() ? edge.delayNs : part->ns - shortest;
    });
}

}  // namespace

void changeTransfers(TaskGraph& graph, const TransferTime& newNs) {
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

TaskGraph sealed(GraphDraft&& draft, const char* circle, std::vector<TaskId>* numbers) {
    std::optional<TaskGraph> graph = std::move(draft).seal(numbers);
    if (!graph) throw EditError(circle);
    return std::move(*graph);
}

std::vector<int64_t> besideOthersNs(const TaskGraph& graph, const Schedule& schedule,
                                    const std::function<bool(const Exchange&)>& counts) {
    using Where = std::tuple<uint32_t, int, uint32_t>;  // communicator, rank, lane
    std::map<Where, std::vector<facts::Interval>> times;
    const auto whereOf = [&](const Exchange& exchange, const ExchangeMember& member) {
        return Where(exchange.communicatorId, member.rank, graph.info[member.transfer].lane);
    };
    for (const Exchange& exchange : graph.exchanges)
        if (!exchange.message() && counts(exchange))
            for (const ExchangeMember& member : graph.membersOf(exchange))
                times[whereOf(exchange, member)].push_back(
                    {schedule.startNs[member.transfer], schedule.endNs[member.transfer]});
    std::map<Where, facts::CoveredLength> busy;
    for (auto& [where, intervals] : times)
        busy.emplace(where, facts::CoveredLength(facts::unite(std::move(intervals))));
    std::vector<int64_t> result;
    for (const Exchange& exchange : graph.exchanges) {
        int64_t least = INT64_MAX;
        for (const ExchangeMember& member : graph.membersOf(exchange)) {
            const Where own = whereOf(exchange, member);
            int64_t beside = 0;
            for (auto other = busy.lower_bound({std::get<0>(own), std::get<1>(own), 0});
                 other != busy.end() && std::get<0>(other->first) == std::get<0>(own) &&
                 std::get<1>(other->first) == std::get<1>(own);
                 ++other)
                if (other->first != own)
                    beside += other->second.within(schedule.startNs[member.transfer], schedule.endNs[member.transfer]);
            least = std::min(least, beside);
        }
        result.push_back(exchange.message() || exchange.members == 0 ? 0 : least);
    }
    return result;
}

void removeExchange(Exchange& exchange) {
    exchange.members = 0;
    exchange.join = kNoTask;
    exchange.bytes = 0;
}

void joinCollective(GraphDraft& draft, const TaskInfo& info, Exchange exchange,
                    const std::vector<ExchangeMember>& members) {
    exchange.join = draft.addTask(info, 0);
    const uint32_t number = draft.addExchange(exchange, members);
    draft.info(exchange.join).detail = number;
    for (const ExchangeMember& member : members) {
        draft.info(member.arrival).detail = draft.info(member.transfer).detail = number;
        draft.addEdge(exchange.join, member.arrival, WaitKind::peer);
        draft.addEdge(member.transfer, exchange.join, WaitKind::peer);
    }
}

void scaleTransfer(TaskGraph& graph, TaskId transfer, double factor) {
    graph.durationNs[transfer] = scaledNs(graph.durationNs[transfer], factor);
    graph.leadNs[transfer] = scaledNs(graph.leadNs[transfer], factor);
    setDelays(graph, transfer, [&](const Edge& edge) { return scaledNs<int64_t>(edge.delayNs, factor); });
}

namespace {

/// Of a stream: first of its tasks of each step.
using StepBegins = std::map<int, TaskId>;

std::vector<StepBegins> stepBegins(const TaskGraph& graph) {
    std::vector<StepBegins> begins(graph.lanes.size());
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        if (info.lane != kNoLane && info.step >= 0) begins[info.lane].try_emplace(info.step, task);
    }
    return begins;
}

/// What copies are for: the last of a step and of a stream.
using LastCopies = std::map<std::pair<uint32_t, int>, TaskId>;  // by lane they were on, and step

/// The device has begun a step when the copies for it are there, too.
void keepMarksWaiting(const TaskGraph& graph, const LastCopies& last, GraphDraft& draft) {
    std::map<std::pair<int, int>, TaskId> ofStep;  // by rank and step
    for (const auto& [where, copy] : last) {
        TaskId& latest = ofStep.try_emplace({graph.lanes[where.first].rank, where.second}, copy).first->second;
        latest = std::max(latest, copy);
    }
    for (const StepMark& mark : graph.marks) {
        const int done = mark.closes ? mark.step : mark.step - 1;
        if (const auto copy = ofStep.find({mark.rank, done}); copy != ofStep.end())
            draft.addEdge(mark.task, copy->second, WaitKind::mark);
    }
}

}  // namespace

void putAside(TaskGraph& graph, const CopiesAside& copies) {
    const std::vector<StepBegins> begins = stepBegins(graph);
    GraphDraft draft(graph);
    std::map<int, uint32_t> streams;  // by rank
    LastCopies last;
    for (TaskId task = 0; task < graph.size(); ++task) {
        const auto copy = copies.find(task);
        if (copy == copies.end()) continue;
        auto launches = graph.edgesOf(task, WaitKind::launch);
        if (launches.empty()) {
            draft.durationNs(task) = copy->second;
            continue;
        }
        const Edge& launch = launches.front();
        TaskInfo info = graph.info[task];
        const uint32_t place = info.lane;
        const Lane& from = graph.lanes[place];
        const auto [stream, isNew] = streams.try_emplace(from.rank, 0);
        if (isNew) stream->second = draft.addLane(from);
        info.lane = stream->second & kNoLane;
        const TaskId aside = draft.addTask(info, copy->second);
        last[{place, info.step}] = aside;
        draft.addEdge(aside, launch.from, WaitKind::launch, launch.delayNs, launch.afterStart);
        draft.durationNs(task) = 0;
        draft.leadNs(task) = 0;
    }
    for (const auto& [where, copy] : last) {
        const auto next = begins[where.first].upper_bound(where.second);
        if (next != begins[where.first].end()) draft.addEdge(next->second, copy, WaitKind::event);
    }
    keepMarksWaiting(graph, last, draft);
    graph = sealed(std::move(draft), "beside compute these copies would wait for themselves");
}

}  // namespace rankscope::edits
