// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/resend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

/// On the stream that computes, or beside it: no communication.
bool computes(replay::TaskKind kind) {
    return kind == replay::TaskKind::kernel || kind == replay::TaskKind::copy || kind == replay::TaskKind::set;
}

}  // namespace

LaunchCosts Resend::typicalOf(const RoundMember& member) const {
    for (replay::TaskId launch : member.launches)
        if (launch == replay::kNoTask || m_index.launched(launch) != 1)
            throw EditError(
                fmt::format("a collective of rank {} was not launched by a call of its own (CUDA graph?)", member.rank),
                "its buckets cannot be moved");
    return launchCosts(m_graph, member.launches, member.arrivals);
}

void Resend::takeOut(const GradientRound& round, const std::vector<LaunchCosts>& typical) {
    const auto take = [&](replay::TaskId task) {
        m_gone[task] = true;
        m_draft.durationNs(task) = 0;
        m_draft.leadNs(task) = 0;
    };
    for (uint32_t exchange : round.exchanges) {
        take(m_graph.exchanges[exchange].join);
        m_goneExchanges.push_back(exchange);
    }
    for (size_t m = 0; m < round.members.size(); ++m) {
        const RoundMember& member = round.members[m];
        for (size_t i = 0; i < member.arrivals.size(); ++i) {
            take(member.arrivals[i]);
            take(member.transfers[i]);
            // What the host did beyond the call stays.
            const replay::TaskId call = member.launches[i];
            m_draft.durationNs(call) = std::max<int64_t>(0, m_draft.durationNs(call) - typical[m].callNs);
            m_draft.leadNs(call) =
                static_cast<uint32_t>(std::max<int64_t>(0, int64_t{m_draft.leadNs(call)} - typical[m].leadNs));
        }
    }
}

void Resend::add(const GradientRound& round, const NewBuckets& buckets) {
    m_gone.resize(m_graph.size(), false);
    m_replacedBy.resize(m_graph.size(), replay::kNoTask);
    m_usesKnown.resize(m_graph.size(), false);
    m_fewer.resize(m_graph.size(), false);
    std::vector<LaunchCosts> typical;
    for (const RoundMember& member : round.members) typical.push_back(typicalOf(member));
    takeOut(round, typical);
    const size_t count = buckets.ends.size();
    const replay::Exchange& model = m_graph.exchanges[round.exchanges.front()];
    std::vector<std::vector<replay::ExchangeMember>> rows(count);
    for (size_t m = 0; m < round.members.size(); ++m) {
        const RoundMember& member = round.members[m];
        const ComputeLane& compute = m_index.compute(member.rank);
        const replay::TaskInfo arrivalInfo = m_graph.info[member.arrivals.front()],
                               transferInfo = m_graph.info[member.transfers.front()],
                               callInfo = m_graph.info[member.launches.front()];
        replay::TaskId onStream = m_draft.before(member.arrivals.front());  // in front of the next bucket
        size_t passed = 0;
        for (size_t b = 0; b < count; ++b) {
            const int64_t ready = buckets.ready[m][b];
            const replay::TaskId kernel = compute.kernels[static_cast<size_t>(ready)];
            // Behind the call of the kernel; where the round is sent when the pass is over, in the place of an old one.
            const bool moved = !round.late() || ready != member.ready.front();
            const replay::TaskId kernelCall = m_index.launchOf(kernel);
            const replay::TaskId anchor = moved && kernelCall != replay::kNoTask
                                              ? kernelCall
                                              : member.launches[std::min(b, member.launches.size() - 1)];
            const auto [last, isNew] = m_lastBehind.try_emplace(anchor, anchor);
            const replay::TaskId call =
                m_draft.insertTask(callInfo, last->second, typical[m].callNs, typical[m].leadNs);
            last->second = call;
            // On the stream behind the old buckets that were ready before, with what had been put between them.
            for (; moved && passed < member.arrivals.size() && member.ready[passed] <= ready; ++passed)
                onStream = member.transfers[passed];
            const replay::TaskId arrival = m_draft.insertTask(arrivalInfo, onStream, 0, typical[m].gapNs);
            const replay::TaskId transfer =
                m_draft.insertTask(transferInfo, arrival, std::llround(buckets.transferNs[m][b]), 0);
            onStream = transfer;
            m_draft.addEdge(arrival, call, replay::WaitKind::launch, typical[m].launchDelayNs, typical[m].afterStart);
            m_draft.addEdge(arrival, kernel, replay::WaitKind::event, typical[m].eventDelayNs);
            if (m < buckets.uses.size() && !buckets.uses[m].empty())
                m_draft.addEdge(compute.kernels[static_cast<size_t>(buckets.uses[m][b])], transfer,
                                replay::WaitKind::event, typical[m].eventDelayNs);
            rows[b].push_back({member.rank, arrival, transfer});
        }
        if (m < buckets.uses.size() && !buckets.uses[m].empty())
            for (replay::TaskId transfer : member.transfers) m_usesKnown[transfer] = true;
        double end = 0;
        size_t b = 0;
        for (size_t i = 0; i < member.transfers.size(); ++i) {
            end += round.bytes[i];
            while (b + 1 < count && buckets.ends[b] < end * (1 - 1e-6)) ++b;
            m_replacedBy[member.transfers[i]] = m_replacedBy[member.arrivals[i]] = rows[b].back().transfer;
            m_fewer[member.transfers[i]] = count < member.transfers.size();
        }
    }
    for (size_t b = 0; b < count; ++b) {
        replay::Exchange exchange = model;
        exchange.bytes = std::llround(buckets.ends[b] - (b == 0 ? 0 : buckets.ends[b - 1]));
        joinCollective(m_draft, m_graph.info[model.join], exchange, rows[b]);
    }
}

void Resend::awaitAt(const RoundMember& member, const std::vector<int64_t>& uses) {
    const ComputeLane& compute = m_index.compute(member.rank);
    m_awaitedElsewhere.insert(member.transfers.begin(), member.transfers.end());
    const int64_t delayNs = typicalOf(member).eventDelayNs;
    for (size_t i = 0; i < uses.size(); ++i)
        m_added.push_back({compute.kernels[static_cast<size_t>(uses[i])], member.transfers[i], delayNs});
}

// A call that puts something on a stream waits for the device only where the stream's launch queue is full
// (rank_recorder.cpp).
bool Resend::waitsForRoom(replay::TaskId to, const replay::Edge& edge) const {
    if (static_cast<replay::WaitKind>(edge.kind) != replay::WaitKind::blocking || to >= m_graph.size()) return false;
    if (m_graph.info[to].kind == replay::TaskKind::host) return true;
    const std::string name = taskName(m_graph, m_analysis, to);
    return name.find("StreamWaitEvent") != std::string::npos || name.find("EventRecord") != std::string::npos;
}

replay::TaskGraph Resend::finish() && {
    std::vector<std::pair<replay::TaskId, replay::Edge>> moved;
    m_gone.resize(m_draft.size(), false);
    m_draft.removeEdges([&](replay::TaskId to, const replay::Edge& edge) {
        if (m_gone[to]) return true;
        if (m_awaitedElsewhere.count(edge.from) != 0 &&
            static_cast<replay::WaitKind>(edge.kind) == replay::WaitKind::event && computes(m_draft.info(to).kind))
            return true;
        if (!m_gone[edge.from]) return false;
        if (edge.from < m_usesKnown.size() && m_usesKnown[edge.from] && computes(m_draft.info(to).kind)) return true;
        if (edge.from < m_fewer.size() && m_fewer[edge.from] && waitsForRoom(to, edge)) return true;
        if (edge.from < m_replacedBy.size() && m_replacedBy[edge.from] != replay::kNoTask) moved.emplace_back(to, edge);
        return true;
    });
    for (const auto& [to, edge] : moved)
        m_draft.addEdge(to, m_replacedBy[edge.from], static_cast<replay::WaitKind>(edge.kind), edge.delayNs,
                        edge.afterStart);
    for (const Wait& wait : m_added) m_draft.addEdge(wait.to, wait.from, replay::WaitKind::event, wait.delayNs);
    std::optional<replay::TaskGraph> graph = std::move(m_draft).seal();
    if (!graph) throw EditError("with these buckets work would wait for itself");
    for (uint32_t exchange : m_goneExchanges) removeExchange(graph->exchanges[exchange]);
    return std::move(*graph);
}

namespace {

constexpr int64_t kLongestEmptyNs =
    5'000;  // a kernel without work takes 2 to 5 us on the device, by its own time stamps

/// What a kernel of this rank takes without work: no more than its shortest one does with some.
int64_t emptyKernelNs(const replay::TaskGraph& graph, const ComputeLane& compute) {
    int64_t shortest = kLongestEmptyNs;
    for (replay::TaskId kernel : compute.kernels)
        if (graph.durationNs[kernel] > 0) shortest = std::min(shortest, graph.durationNs[kernel]);
    return shortest;
}

int32_t nameOf(const replay::TaskGraph& graph, replay::TaskId kernel) {
    const uint32_t key = graph.info[kernel].detail;
    return key < graph.kernelKeys.size() ? graph.kernelKeys[key].nameId : -1;
}

/// By place in a piece, by piece: its kernels. Empty: they are not alike.
std::vector<std::vector<replay::TaskId>> piecesOf(const replay::TaskGraph& graph, const ComputeLane& compute,
                                                  const std::vector<int64_t>& ready) {
    const int64_t length = ready[1] - ready[0];
    if (length < 1 || ready.front() < length - 1) return {};
    std::vector<std::vector<replay::TaskId>> places(static_cast<size_t>(length));
    for (size_t piece = 0; piece < ready.size(); ++piece) {
        if (piece > 0 && ready[piece] - ready[piece - 1] != length) return {};
        for (int64_t place = 0; place < length; ++place) {
            const replay::TaskId kernel = compute.kernels[static_cast<size_t>(ready[piece] - place)];
            std::vector<replay::TaskId>& kernels = places[static_cast<size_t>(place)];
            if (!kernels.empty() && nameOf(graph, kernel) != nameOf(graph, kernels.front())) return {};
            kernels.push_back(kernel);
        }
    }
    return places;
}

}  // namespace

void Resend::mergeKernels(const std::vector<replay::TaskId>& kernels, size_t first, size_t last, int64_t emptyNs) {
    std::vector<double> leads, calls;
    for (replay::TaskId kernel : kernels) {
        leads.push_back(static_cast<double>(m_graph.leadNs[m_index.launchOf(kernel)]));
        calls.push_back(static_cast<double>(m_graph.durationNs[m_index.launchOf(kernel)]));
    }
    const auto leadNs = std::llround(facts::median(std::move(leads))),
               callNs = std::llround(facts::median(std::move(calls)));
    int64_t workNs = 0;
    for (size_t piece = first; piece <= last; ++piece)
        workNs += std::max<int64_t>(0, m_graph.durationNs[kernels[piece]] - emptyNs);
    for (size_t piece = first; piece < last; ++piece) {
        m_draft.durationNs(kernels[piece]) = 0;
        m_draft.leadNs(kernels[piece]) = 0;
        // What the host did beyond the call stays.
        const replay::TaskId call = m_index.launchOf(kernels[piece]);
        m_draft.durationNs(call) = std::max<int64_t>(0, m_draft.durationNs(call) - callNs);
        m_draft.leadNs(call) = static_cast<uint32_t>(std::max<int64_t>(0, int64_t{m_draft.leadNs(call)} - leadNs));
    }
    m_draft.durationNs(kernels[last]) = std::min(emptyNs, m_graph.durationNs[kernels[last]]) + workNs;
}

void Resend::mergeUpdates(const RoundMember& member, const std::vector<int64_t>& ready) {
    if (member.ready.size() < 2 || ready.size() >= member.ready.size()) return;
    const ComputeLane& compute = m_index.compute(member.rank);
    const std::vector<std::vector<replay::TaskId>> places = piecesOf(m_graph, compute, member.ready);
    for (const std::vector<replay::TaskId>& kernels : places)
        for (replay::TaskId kernel : kernels)
            if (m_index.launchOf(kernel) == replay::kNoTask || m_index.launched(m_index.launchOf(kernel)) != 1) return;
    const int64_t emptyNs = emptyKernelNs(m_graph, compute);
    size_t first = 0;
    for (int64_t last : ready) {
        const auto at = std::ranges::find(member.ready, last);
        if (at == member.ready.end()) return;  // a bucket begins inside of a present one
        const auto piece = static_cast<size_t>(at - member.ready.begin());
        for (const std::vector<replay::TaskId>& kernels : places)
            if (piece > first) mergeKernels(kernels, first, piece, emptyNs);
        first = piece + 1;
    }
}

}  // namespace rankscope::edits
