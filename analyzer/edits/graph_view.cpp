// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/graph_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::edits {

std::vector<TransferTask> transferTasks(const TaskGraph& graph) {
    // Numbered in the order of tasks before they are filled in: there is nothing to sort.
    std::vector<bool> carries(graph.size());
    for (const Exchange& exchange : graph.exchanges)
        for (const ExchangeMember& member : graph.membersOf(exchange)) carries[member.transfer] = true;
    std::vector<uint32_t> indexOf(graph.size());
    uint32_t count = 0;
    for (TaskId task = 0; task < graph.size(); ++task) {
        indexOf[task] = count;
        count += carries[task] ? 1 : 0;
    }
    std::vector<TransferTask> transfers(count);
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
        const Exchange& exchange = graph.exchanges[i];
        const auto members = graph.membersOf(exchange);
        for (size_t m = 0; m < members.size(); ++m) {
            const TaskId task = members[m].transfer;
            TransferTask& transfer = transfers[indexOf[task]];
            if (transfer.task == kNoTask) transfer = {task, i, 0, 0, members[m].rank};
            if (!exchange.message()) continue;
            (m == 0 ? transfer.bytesOut : transfer.bytesIn) += std::max<int64_t>(0, exchange.bytes);
            if (exchange.bytes > graph.exchanges[transfer.exchange].bytes) transfer.exchange = i;
        }
    }
    return transfers;
}

bool spansNodes(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const auto ends = graph.membersOf(exchange);
    if (exchange.message()) return !analysis.facts.sameHost({ends.front().rank, ends.back().rank});
    const facts::Communicator* communicator = analysis.facts.findCommunicator(exchange.communicatorId);
    return communicator != nullptr && communicator->nodes > 1;
}

namespace {

/// Whose links carry an exchange: of a message those between two ranks. Nothing where that is not known.
std::optional<facts::Communicator> groupOf(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const facts::Communicator* communicator = analysis.facts.findCommunicator(exchange.communicatorId);
    if (communicator == nullptr) return std::nullopt;
    return exchange.message() ? costs::pairOfRanks(spansNodes(graph, analysis, exchange)) : *communicator;
}

/// Start-up of an exchange by the links, the usual one where they tell none; negative: no link is known. Left open it
/// would be all that the peak does not explain, also of a slow link.
double configuredStartUpNs(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const std::optional<facts::Communicator> group = groupOf(graph, analysis, exchange);
    const std::optional<costs::LinkModel> link =
        group ? costs::linkWithLatency(analysis.peaks, *group, exchange.op) : std::nullopt;
    if (!link) return -1;
    return costs::collectiveNs(*link, exchange.op, group->size, 0, {exchange.algorithm, exchange.protocol}).high;
}

}  // namespace

double startUpNs(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const costs::CostFit* fit = analysis.cost.line(exchange.communicatorId, exchange.op);
    if (fit != nullptr && fit->source == "fit") return fit->alphaNs;
    const double configured = configuredStartUpNs(graph, analysis, exchange);
    if (fit == nullptr) return configured;
    // With the peak as prior alpha is all that the peak does not explain: no less than the start-up time.
    return configured < 0 ? fit->alphaNs : std::min(configured, fit->alphaNs);
}

double peakNs(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange) {
    const std::optional<facts::Communicator> group = groupOf(graph, analysis, exchange);
    const std::optional<costs::LinkModel> link =
        group && exchange.bytes > 0 ? costs::linkModel(analysis.peaks, *group, exchange.op) : std::nullopt;
    if (!link) return -1;
    return costs::collectiveNs(*link, exchange.op, group->size, static_cast<double>(exchange.bytes),
                               {exchange.algorithm, exchange.protocol})
        .low;
}

LaunchCosts launchCosts(const TaskGraph& graph, const std::vector<TaskId>& calls, const std::vector<TaskId>& arrivals) {
    bool afterStart = true;
    std::vector<double> leads, durations, gaps, delays, events;
    for (size_t i = 0; i < calls.size(); ++i) {
        leads.push_back(graph.leadNs[calls[i]]);
        durations.push_back(static_cast<double>(graph.durationNs[calls[i]]));
        gaps.push_back(graph.leadNs[arrivals[i]]);
        for (const Edge& edge : graph.edgesOf(arrivals[i], WaitKind::event)) events.push_back(edge.delayNs);
        for (const Edge& edge : graph.edgesOf(arrivals[i], WaitKind::launch)) {
            delays.push_back(edge.delayNs);
            afterStart = edge.afterStart;
        }
    }
    const auto usual = [](std::vector<double>& ns) { return std::llround(facts::median(std::move(ns))); };
    return {usual(leads), usual(durations), usual(gaps), usual(delays), usual(events), afterStart};
}

bool growsWithReplicas(facts::CommRole role) {
    return role == facts::CommRole::gradients || role == facts::CommRole::shardedParameters ||
           role == facts::CommRole::replicas;
}

std::string_view callName(const TaskGraph& graph, const Analysis& analysis, TaskId task) {
    const TaskInfo& info = graph.info[task];
    const bool call = info.kind == TaskKind::host || info.kind == TaskKind::blockingCall;
    return call ? analysis.facts.string(static_cast<int32_t>(info.detail)) : std::string_view();
}

std::vector<uint32_t> usualLeads(const TaskGraph& graph) {
    std::vector<std::vector<double>> leads(graph.lanes.size());
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        if (info.kind == TaskKind::host && info.lane != kNoLane && graph.before[task] != kNoTask)
            leads[info.lane].push_back(graph.leadNs[task]);
    }
    std::vector<uint32_t> usual;
    for (std::vector<double>& lane : leads) usual.push_back(static_cast<uint32_t>(facts::median(std::move(lane))));
    return usual;
}

std::vector<bool> afterLastSubmission(const TaskGraph& graph) {
    std::vector<bool> launches(graph.size());
    for (TaskId task = 0; task < graph.size(); ++task)
        for (const Edge& edge : graph.edgesOf(task, WaitKind::launch)) launches[edge.from] = true;
    std::vector<bool> result(graph.size());
    std::vector<int> submitsIn(graph.lanes.size(),
                               INT32_MIN);  // by lane, going backwards: the step of the next submission
    for (TaskId task = static_cast<TaskId>(graph.size()); task-- > 0;) {
        const TaskInfo& info = graph.info[task];
        if (!graph.onHost(task)) continue;
        result[task] = submitsIn[info.lane] != info.step;
        if (launches[task]) submitsIn[info.lane] = info.step;
    }
    return result;
}

bool isLongLead(const TaskGraph& graph, TaskId task) {
    const TaskInfo& info = graph.info[task];
    return info.kind == TaskKind::host && info.row == 0 && info.detail == 0 && graph.durationNs[task] > UINT32_MAX;
}

void shortenLead(TaskGraph& graph, TaskId task, uint32_t usualNs) {
    graph.leadNs[task] = std::min(graph.leadNs[task], usualNs);
    const TaskId before = graph.before[task];
    if (before != kNoTask && isLongLead(graph, before)) graph.durationNs[before] = usualNs;
}

int64_t ComputeLane::find(TaskId task) const {
    const auto at = std::lower_bound(kernels.begin(), kernels.end(), task);  // lane order is the order of numbers
    return at != kernels.end() && *at == task ? at - kernels.begin() : -1;
}

int64_t ComputeLane::findFrom(TaskId task) const {
    const auto at = std::lower_bound(kernels.begin(), kernels.end(), task);
    return at != kernels.end() ? at - kernels.begin() : -1;
}

NumbersByTask::NumbersByTask(size_t tasks, const std::vector<std::pair<TaskId, uint32_t>>& numbers)
    : m_first(tasks + 1, 0), m_numbers(numbers.size()) {
    for (const auto& [task, number] : numbers) ++m_first[task + 1];
    std::partial_sum(m_first.begin(), m_first.end(), m_first.begin());
    std::vector<uint32_t> next(m_first.begin(), m_first.end() - 1);
    for (const auto& [task, number] : numbers) m_numbers[next[task]++] = number;
}

std::map<int, uint32_t> computeLanes(const TaskGraph& graph) {
    std::vector<int64_t> kernelNs(graph.lanes.size(), 0);
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.info[task].kind == TaskKind::kernel) kernelNs[graph.info[task].lane] += graph.durationNs[task];
    std::map<int, uint32_t> lanes;
    for (uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
        if (kernelNs[lane] == 0) continue;
        const auto [most, isFirst] = lanes.try_emplace(graph.lanes[lane].rank, lane);
        if (!isFirst && kernelNs[lane] > kernelNs[most->second]) most->second = lane;
    }
    return lanes;
}

LaunchIndex::LaunchIndex(const TaskGraph& graph) : m_launchOf(graph.size(), kNoTask), m_launched(graph.size(), 0) {
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind == TaskKind::transfer && graph.before[task] != kNoTask)
            m_launchOf[task] = m_launchOf[graph.before[task]];
        for (const Edge& edge : graph.edgesOf(task, WaitKind::launch)) {
            m_launchOf[task] = edge.from;
            ++m_launched[edge.from];
        }
    }
    for (const auto& [rank, lane] : computeLanes(graph)) m_compute[rank].lane = lane;
    std::vector<ComputeLane*> byLane(graph.lanes.size(), nullptr);
    for (auto& [rank, compute] : m_compute) byLane[compute.lane] = &compute;
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::kernel || byLane[graph.info[task].lane] == nullptr) continue;
        ComputeLane& compute = *byLane[graph.info[task].lane];
        compute.kernels.push_back(task);
        compute.doneNs.push_back((compute.doneNs.empty() ? 0 : compute.doneNs.back()) + graph.durationNs[task]);
    }
}

int64_t LaunchIndex::launchedBefore(const ComputeLane& compute, TaskId call) const {
    return std::ranges::partition_point(
               compute.kernels, [&](TaskId kernel) { return launchOf(kernel) == kNoTask || launchOf(kernel) < call; }) -
           compute.kernels.begin();
}

const ComputeLane& LaunchIndex::compute(int rank) const {
    static const ComputeLane nothing;
    const auto at = m_compute.find(rank);
    return at == m_compute.end() ? nothing : at->second;
}

int64_t emptyKernelNs(const TaskGraph& graph, std::span<const TaskId> kernels) {
    constexpr int64_t kLongestEmptyNs = 5'000;  // 2 to 5 us on the device, by its own time stamps
    int64_t shortest = kLongestEmptyNs;
    for (TaskId kernel : kernels)
        if (graph.durationNs[kernel] > 0) shortest = std::min(shortest, graph.durationNs[kernel]);
    return shortest;
}

}  // namespace rankscope::edits
