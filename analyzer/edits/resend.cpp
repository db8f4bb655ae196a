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

constexpr size_t kFewestCalls = 3;  // whose median is none of a single pause of the host

/// On the stream that computes, or beside it: no communication.
bool computes(TaskKind kind) {
    return kind == TaskKind::kernel || kind == TaskKind::copy || kind == TaskKind::set;
}

}  // namespace

Resend::Resend(const TaskGraph& graph, const Analysis& analysis, const LaunchIndex& index)
    : m_graph(graph), m_analysis(analysis), m_index(index), m_draft(graph), m_next(graph.size(), kNoTask) {
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.before[task] != kNoTask) m_next[graph.before[task]] = task;
}

int64_t Resend::behindNs(const std::vector<TaskId>& calls) const {
    std::vector<double> behind, others;
    TaskId before = kNoTask;
    for (TaskId call : calls) {
        if (before != kNoTask && m_graph.info[call].lane != m_graph.info[before].lane) return 0;
        for (TaskId task = before == kNoTask ? call : m_next[before]; task != kNoTask && task < call;
             task = m_next[task])
            (m_graph.before[task] == before ? behind : others).push_back(m_graph.leadNs[task]);
        before = call;
    }
    if (behind.size() < kFewestCalls || others.empty()) return 0;
    return std::max<int64_t>(0, std::llround(facts::median(std::move(behind)) - facts::median(std::move(others))));
}

Resend::CallCosts Resend::typicalOf(const RoundMember& member) const {
    for (TaskId launch : member.launches)
        if (launch == kNoTask || m_index.launched(launch) != 1)
            throw EditError(
                fmt::format("a collective of rank {} was not launched by a call of its own (CUDA graph?)", member.rank),
                "its buckets cannot be moved");
    return {launchCosts(m_graph, member.launches, member.arrivals), behindNs(member.launches)};
}

void Resend::takeLead(TaskId task, int64_t leadNs) {
    m_draft.leadNs(task) = static_cast<uint32_t>(std::max<int64_t>(0, m_draft.leadNs(task) - leadNs));
}

void Resend::takeCall(TaskId call, const LaunchCosts& costs) {
    m_draft.durationNs(call) = std::max<int64_t>(0, m_draft.durationNs(call) - costs.callNs);
    takeLead(call, costs.leadNs);
}

void Resend::takeOut(const GradientRound& round, const std::vector<CallCosts>& typical) {
    const auto take = [&](TaskId task) {
        m_gone[task] = true;
        m_draft.durationNs(task) = 0;
        m_draft.leadNs(task) = 0;
    };
    m_gone.resize(m_graph.size(), false);
    for (uint32_t exchange : round.exchanges) {
        take(m_graph.exchanges[exchange].join);
        m_goneExchanges.push_back(exchange);
    }
    for (size_t m = 0; m < round.members.size(); ++m) {
        const RoundMember& member = round.members[m];
        for (size_t i = 0; i < member.arrivals.size(); ++i) {
            take(member.arrivals[i]);
            take(member.transfers[i]);
            takeCall(member.launches[i], typical[m]);
            if (const TaskId next = m_next[member.launches[i]]; next != kNoTask) takeLead(next, typical[m].behindNs);
        }
    }
}

uint32_t Resend::laneAside(int rank, int64_t communicator) {
    const auto [lane, isNew] = m_lanesAside.try_emplace({rank, communicator}, kNoLane);
    if (isNew) lane->second = m_draft.addLane({.rank = rank, .host = false});
    return lane->second;
}

void Resend::hold(const ComputeLane& compute, const std::vector<int64_t>& ready, const std::vector<TaskId>& transfers,
                  int64_t delayNs) {
    const auto kernels = static_cast<int64_t>(compute.kernels.size());
    for (size_t b = 0; b < transfers.size(); ++b) {
        const int64_t next = ready[b] + 1;
        if (next >= kernels) return;
        if (b > 0) m_draft.addEdge(compute.at(next), transfers[b - 1], WaitKind::event, delayNs);
        const TaskId call = m_index.launchOf(compute.at(next));
        if (b + 1 == transfers.size() && call != kNoTask)
            m_draft.addEdge(call, transfers[b], WaitKind::blocking, delayNs);
    }
}

void Resend::add(const GradientRound& round, const NewBuckets& buckets) {
    std::vector<CallCosts> typical;
    for (const RoundMember& member : round.members) typical.push_back(typicalOf(member));
    takeOut(round, typical);
    const size_t count = buckets.ends.size();
    const Exchange& model = m_graph.exchanges[round.exchanges.front()];
    std::vector<std::vector<ExchangeMember>> rows(count);
    for (size_t m = 0; m < round.members.size(); ++m) {
        const RoundMember& member = round.members[m];
        const ComputeLane& compute = m_index.compute(member.rank);
        TaskInfo arrivalInfo = m_graph.info[member.arrivals.front()],
                 transferInfo = m_graph.info[member.transfers.front()];
        const TaskInfo callInfo = m_graph.info[member.launches.front()];
        const bool aside = buckets.aside && arrivalInfo.lane == compute.lane;
        if (aside) arrivalInfo.lane = transferInfo.lane = laneAside(member.rank, round.communicator);
        TaskId place = m_graph.before[member.arrivals.front()];
        TaskId onStream = aside ? m_draft.last(arrivalInfo.lane)
                                : m_draft.before(member.arrivals.front());  // in front of the next bucket
        size_t passed = 0;
        const bool used = m < buckets.uses.size() && !buckets.uses[m].empty();
        std::vector<Sent> sent;
        for (size_t b = 0; b < count; ++b) {
            const int64_t ready = buckets.ready[m][b];
            const TaskId kernel = compute.at(ready);
            // Behind the call of the kernel; where the round is sent when the pass is over, in the place of an old one.
            const bool moved = !round.late() || ready != member.ready.front();
            const TaskId kernelCall = m_index.launchOf(kernel);
            TaskId anchor =
                moved && kernelCall != kNoTask ? kernelCall : member.launches[std::min(b, member.launches.size() - 1)];
            if (moved && !aside) {
                // On the stream behind the old buckets that were ready before, with what a framework that sends late
                // had put between them, and what else was given to it.
                const TaskId former = place;
                for (; passed < member.arrivals.size() && member.ready[passed] <= ready; ++passed)
                    place = member.transfers[passed];
                place = givenBefore(place, anchor);
                if (place != former) onStream = place;
            }
            const auto [last, isNew] = m_lastBehind.try_emplace(anchor, anchor);
            const TaskId call =
                m_draft.insertTask(callInfo, last->second, typical[m].callNs + typical[m].behindNs, typical[m].leadNs);
            last->second = call;
            const TaskId arrival = m_draft.insertTask(arrivalInfo, onStream, 0, typical[m].gapNs);
            const TaskId transfer =
                m_draft.insertTask(transferInfo, arrival, std::llround(buckets.transferNs[m][b]), 0);
            onStream = transfer;
            m_draft.addEdge(arrival, call, WaitKind::launch, typical[m].launchDelayNs, typical[m].afterStart);
            m_draft.addEdge(arrival, kernel, WaitKind::event, typical[m].eventDelayNs);
            if (used)
                m_draft.addEdge(compute.at(buckets.uses[m][b]), transfer, WaitKind::event, typical[m].eventDelayNs);
            rows[b].push_back({member.rank, arrival, transfer});
            sent.push_back({anchor, kernel, transfer});
        }
        if (buckets.held) {
            std::vector<TaskId> transfers;
            for (const std::vector<ExchangeMember>& row : rows) transfers.push_back(row.back().transfer);
            hold(compute, buckets.ready[m], transfers, typical[m].eventDelayNs);
        }
        // What followed the sums on the stream needs them.
        if (const auto next = std::ranges::upper_bound(compute.kernels, member.transfers.back());
            aside && next != compute.kernels.end())
            m_draft.addEdge(*next, rows.back().back().transfer, WaitKind::event, typical[m].eventDelayNs);
        double end = 0;
        size_t b = 0;
        for (size_t i = 0; i < member.transfers.size(); ++i) {
            end += round.bytes[i];
            while (b + 1 < count && buckets.ends[b] < end * (1 - 1e-6)) ++b;
            m_replaced[member.arrivals[i]] = {m_sent.size(), b, false, false};
            m_replaced[member.transfers[i]] = {m_sent.size(), b, count < member.transfers.size(), used};
        }
        m_sent.push_back(std::move(sent));
    }
    for (size_t b = 0; b < count; ++b) {
        Exchange exchange = model;
        exchange.bytes = std::llround(buckets.ends[b] - (b == 0 ? 0 : buckets.ends[b - 1]));
        joinCollective(m_draft, m_graph.info[model.join], exchange, rows[b]);
    }
}

void Resend::awaitAt(const RoundMember& member, const std::vector<int64_t>& uses) {
    const ComputeLane& compute = m_index.compute(member.rank);
    m_awaitedElsewhere.insert(member.transfers.begin(), member.transfers.end());
    const int64_t delayNs = typicalOf(member).eventDelayNs;
    for (size_t i = 0; i < uses.size(); ++i) m_added.push_back({compute.at(uses[i]), member.transfers[i], delayNs});
}

// A call that puts something on a stream waits for the device only where the stream's launch queue is full
// (rank_recorder.cpp).
bool Resend::waitsForRoom(TaskId to, const Edge& edge) const {
    if (edge.kind != WaitKind::blocking || to >= m_graph.size()) return false;
    if (m_graph.info[to].kind == TaskKind::host) return true;
    const std::string_view name = callName(m_graph, m_analysis, to);
    return name.find("StreamWaitEvent") != name.npos || name.find("EventRecord") != name.npos;
}

TaskId Resend::awaitedNow(TaskId to, const Replaced& now) const {
    const std::vector<Sent>& sent = m_sent[now.round];
    size_t behind = now.bucket + 1;
    const auto comesBefore = [&](TaskId task) {
        return to >= m_graph.size() || m_graph.info[to].lane != m_graph.info[task].lane || task < to;
    };
    const auto given = [&](const Sent& bucket) { return comesBefore(bucket.anchor) && comesBefore(bucket.kernel); };
    while (behind > 0 && !given(sent[behind - 1])) --behind;
    return behind == 0 ? kNoTask : sent[behind - 1].transfer;
}

TaskId Resend::givenBefore(TaskId place, TaskId call) const {
    for (TaskId next = place == kNoTask ? kNoTask : m_next[place]; next != kNoTask; next = m_next[next]) {
        const TaskId launch = m_index.launchOf(next);
        if (launch == kNoTask || m_graph.info[launch].lane != m_graph.info[call].lane) continue;
        if (launch >= call) break;
        place = next;
    }
    return place;
}

TaskGraph Resend::finish() && {
    std::vector<std::pair<TaskId, Edge>> moved;
    m_gone.resize(m_draft.size(), false);
    m_draft.removeEdges([&](TaskId to, const Edge& edge) {
        if (m_gone[to]) return true;
        const bool computed = computes(m_draft.info(to).kind);
        if (computed && edge.kind == WaitKind::event && m_awaitedElsewhere.contains(edge.from)) return true;
        if (!m_gone[edge.from]) return false;
        const auto now = m_replaced.find(edge.from);
        if (now == m_replaced.end() || (computed && now->second.usesKnown)) return true;
        if (!now->second.fewer || !waitsForRoom(to, edge)) moved.emplace_back(to, edge);
        return true;
    });
    for (const auto& [to, edge] : moved)
        if (const TaskId now = awaitedNow(to, m_replaced.at(edge.from)); now != kNoTask)
            m_draft.addEdge(to, now, edge.kind, edge.delayNs, edge.afterStart);
    for (const Wait& wait : m_added) m_draft.addEdge(wait.to, wait.from, WaitKind::event, wait.delayNs);
    TaskGraph graph = sealed(std::move(m_draft), "with these buckets work would wait for itself");
    for (uint32_t exchange : m_goneExchanges) removeExchange(graph.exchanges.own(exchange));
    return graph;
}

namespace {

int32_t nameOf(const TaskGraph& graph, TaskId kernel) {
    const uint32_t key = graph.info[kernel].detail;
    return key < graph.kernelKeys.size() ? graph.kernelKeys[key].nameId : -1;
}

/// By place in a piece, by piece: its kernels. Empty: they are not alike.
std::vector<std::vector<TaskId>> piecesOf(const TaskGraph& graph, const ComputeLane& compute,
                                          const std::vector<int64_t>& ready) {
    const int64_t length = ready[1] - ready[0];
    if (length < 1 || ready.front() < length - 1) return {};
    std::vector<std::vector<TaskId>> places(static_cast<size_t>(length));
    for (size_t piece = 0; piece < ready.size(); ++piece) {
        if (piece > 0 && ready[piece] - ready[piece - 1] != length) return {};
        for (int64_t place = 0; place < length; ++place) {
            const TaskId kernel = compute.at(ready[piece] - place);
            std::vector<TaskId>& kernels = places[static_cast<size_t>(place)];
            if (!kernels.empty() && nameOf(graph, kernel) != nameOf(graph, kernels.front())) return {};
            kernels.push_back(kernel);
        }
    }
    return places;
}

}  // namespace

void Resend::mergeKernels(const std::vector<TaskId>& kernels, size_t first, size_t last, int64_t emptyNs) {
    std::vector<TaskId> calls;
    for (TaskId kernel : kernels) calls.push_back(m_index.launchOf(kernel));
    const LaunchCosts costs = launchCosts(m_graph, calls, kernels);
    int64_t workNs = 0;
    for (size_t piece = first; piece <= last; ++piece)
        workNs += std::max<int64_t>(0, m_graph.durationNs[kernels[piece]] - emptyNs);
    for (size_t piece = first; piece < last; ++piece) {
        m_draft.durationNs(kernels[piece]) = 0;
        m_draft.leadNs(kernels[piece]) = 0;
        takeCall(m_index.launchOf(kernels[piece]), costs);
    }
    m_draft.durationNs(kernels[last]) = std::min(emptyNs, m_graph.durationNs[kernels[last]]) + workNs;
}

void Resend::mergeUpdates(const RoundMember& member, const std::vector<int64_t>& ready) {
    if (member.ready.size() < 2 || ready.size() >= member.ready.size()) return;
    const ComputeLane& compute = m_index.compute(member.rank);
    const std::vector<std::vector<TaskId>> places = piecesOf(m_graph, compute, member.ready);
    for (const std::vector<TaskId>& kernels : places)
        for (TaskId kernel : kernels)
            if (m_index.launchOf(kernel) == kNoTask || m_index.launched(m_index.launchOf(kernel)) != 1) return;
    const int64_t emptyNs = emptyKernelNs(m_graph, compute.kernels);
    size_t first = 0;
    for (int64_t last : ready) {
        const auto at = std::ranges::find(member.ready, last);
        if (at == member.ready.end()) return;  // a bucket begins inside of a present one
        const auto piece = static_cast<size_t>(at - member.ready.begin());
        for (const std::vector<TaskId>& kernels : places)
            if (piece > first) mergeKernels(kernels, first, piece, emptyNs);
        first = piece + 1;
    }
}

}  // namespace rankscope::edits
