// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/change_transfers.h"

#include <algorithm>
#include <tuple>

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
    std::sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
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
struct Part {
    TransferTask transfer;
    replay::TaskId peerArrival = replay::kNoTask;
    int64_t ns = 0;
};

void change(replay::TaskGraph& graph, std::span<const Side> sides, int rank, const TransferTime& newNs) {
    const replay::TaskId task = sides.front().transfer;
    std::vector<Part> parts;
    for (const Side& side : sides) {
        const replay::Exchange& exchange = graph.exchanges[side.exchange];
        if (parts.empty() || parts.back().peerArrival != side.peerArrival)
            parts.push_back({{task, side.exchange, 0, 0, rank}, side.peerArrival, 0});
        TransferTask& part = parts.back().transfer;
        (side.sends ? part.bytesOut : part.bytesIn) += std::max<int64_t>(0, exchange.bytes);
        if (exchange.bytes > graph.exchanges[part.exchange].bytes) part.exchange = side.exchange;
    }
    int64_t shortest = INT64_MAX, longest = 0;
    for (Part& part : parts) {
        int64_t longer = 0;
        for (const replay::Edge& edge : edgesOf(graph, task))
            if (waitsForPeer(edge) && edge.from == part.peerArrival) longer = std::max<int64_t>(longer, edge.delayNs);
        part.ns = newNs(part.transfer, graph.exchanges[part.transfer.exchange], graph.durationNs[task] + longer);
        shortest = std::min(shortest, part.ns);
        longest = std::max(longest, part.ns);
    }
    graph.durationNs[task] = shortest;
    graph.leadNs[task] = static_cast<uint32_t>(std::min(longest - shortest, replay::Edge::kLongestDelayNs));
    for (const Part& part : parts)
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

void scaleTransfer(replay::TaskGraph& graph, replay::TaskId transfer, double factor) {
    graph.durationNs[transfer] = scaledNs(graph.durationNs[transfer], factor);
    graph.leadNs[transfer] = static_cast<uint32_t>(scaledNs(graph.leadNs[transfer], factor));
    for (replay::Edge& edge : edgesOf(graph, transfer))
        if (waitsForPeer(edge)) edge.delayNs = static_cast<uint32_t>(scaledNs(edge.delayNs, factor)) & ((1U << 27) - 1);
}

}  // namespace rankscope::edits
