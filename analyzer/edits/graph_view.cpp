// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/graph_view.h"

#include <algorithm>
#include <cmath>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"

namespace rankscope::edits {

std::vector<TransferTask> transferTasks(const replay::TaskGraph& graph) {
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> indexOf(graph.size(), kNone);
    std::vector<TransferTask> transfers;
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
        const replay::Exchange& exchange = graph.exchanges[i];
        const auto members = graph.membersOf(exchange);
        for (size_t m = 0; m < members.size(); ++m) {
            const replay::TaskId task = members[m].transfer;
            if (task == replay::kNoTask) continue;
            if (indexOf[task] == kNone) {
                indexOf[task] = static_cast<uint32_t>(transfers.size());
                transfers.push_back({task, i, 0, 0, members[m].rank});
            }
            TransferTask& transfer = transfers[indexOf[task]];
            if (!exchange.message()) continue;
            (m == 0 ? transfer.bytesOut : transfer.bytesIn) += std::max<int64_t>(0, exchange.bytes);
            if (exchange.bytes > graph.exchanges[transfer.exchange].bytes) transfer.exchange = i;
        }
    }
    std::ranges::sort(transfers, [](const TransferTask& a, const TransferTask& b) { return a.task < b.task; });
    return transfers;
}

std::vector<int> ranksOf(const replay::TaskGraph& graph, const replay::Exchange& exchange) {
    std::vector<int> ranks;
    for (const replay::ExchangeMember& member : graph.membersOf(exchange)) ranks.push_back(member.rank);
    return ranks;
}

bool spansNodes(const replay::TaskGraph& graph, const job::Analysis& analysis, const replay::Exchange& exchange) {
    if (exchange.message()) return !analysis.facts.sameHost(ranksOf(graph, exchange));
    const auto communicator = analysis.facts.communicators.find(exchange.communicatorId);
    return communicator != analysis.facts.communicators.end() && communicator->second.nodes > 1;
}

namespace {

/// Whose links carry an exchange: of a message those between two ranks. Nothing where that is not known.
std::optional<facts::Communicator> groupOf(const replay::TaskGraph& graph, const job::Analysis& analysis,
                                           const replay::Exchange& exchange) {
    const auto communicator = analysis.facts.communicators.find(exchange.communicatorId);
    if (communicator == analysis.facts.communicators.end()) return std::nullopt;
    return exchange.message() ? costs::pairOfRanks(spansNodes(graph, analysis, exchange)) : communicator->second;
}

/// Start-up of an exchange by the links, the usual one where they tell none; negative: no link is known. Left open it
/// would be all that the peak does not explain, also of a slow link.
double configuredStartUpNs(const replay::TaskGraph& graph, const job::Analysis& analysis,
                           const replay::Exchange& exchange) {
    const std::optional<facts::Communicator> group = groupOf(graph, analysis, exchange);
    const std::optional<costs::LinkModel> link =
        group ? costs::linkWithLatency(analysis.peaks, *group, exchange.op) : std::nullopt;
    if (!link) return -1;
    return costs::collectiveNs(*link, exchange.op, group->size, 0, {exchange.algorithm, exchange.protocol}).high;
}

}  // namespace

double startUpNs(const replay::TaskGraph& graph, const job::Analysis& analysis, const replay::Exchange& exchange) {
    const costs::CostFit* fit = analysis.findFit(exchange.communicatorId, exchange.op);
    if (fit != nullptr && fit->source == "fit") return fit->alphaNs;
    const double configured = configuredStartUpNs(graph, analysis, exchange);
    if (fit == nullptr) return configured;
    // With the peak as prior alpha is all that the peak does not explain: no less than the start-up time.
    return configured < 0 ? fit->alphaNs : std::min(configured, fit->alphaNs);
}

double peakNs(const replay::TaskGraph& graph, const job::Analysis& analysis, const replay::Exchange& exchange) {
    const std::optional<facts::Communicator> group = groupOf(graph, analysis, exchange);
    const std::optional<costs::LinkModel> link =
        group && exchange.bytes > 0 ? costs::linkModel(analysis.peaks, *group, exchange.op) : std::nullopt;
    if (!link) return -1;
    return costs::collectiveNs(*link, exchange.op, group->size, static_cast<double>(exchange.bytes),
                               {exchange.algorithm, exchange.protocol})
        .low;
}

LaunchCosts launchCosts(const replay::TaskGraph& graph, const std::vector<replay::TaskId>& calls,
                        const std::vector<replay::TaskId>& arrivals) {
    LaunchCosts costs;
    std::vector<double> leads, durations, gaps, delays, events;
    for (size_t i = 0; i < calls.size(); ++i) {
        leads.push_back(static_cast<double>(graph.leadNs[calls[i]]));
        durations.push_back(static_cast<double>(graph.durationNs[calls[i]]));
        gaps.push_back(static_cast<double>(graph.leadNs[arrivals[i]]));
        for (const replay::Edge& edge : graph.edgesOf(arrivals[i])) {
            const auto kind = static_cast<replay::WaitKind>(edge.kind);
            if (kind == replay::WaitKind::event) events.push_back(static_cast<double>(edge.delayNs));
            if (kind != replay::WaitKind::launch) continue;
            delays.push_back(static_cast<double>(edge.delayNs));
            costs.afterStart = edge.afterStart;
        }
    }
    costs.leadNs = std::llround(facts::median(std::move(leads)));
    costs.callNs = std::llround(facts::median(std::move(durations)));
    costs.gapNs = std::llround(facts::median(std::move(gaps)));
    costs.launchDelayNs = std::llround(facts::median(std::move(delays)));
    costs.eventDelayNs = std::llround(facts::median(std::move(events)));
    return costs;
}

bool growsWithReplicas(facts::CommRole role) {
    return role == facts::CommRole::gradients || role == facts::CommRole::shardedParameters ||
           role == facts::CommRole::replicas;
}

std::string taskName(const replay::TaskGraph& graph, const job::Analysis& analysis, replay::TaskId task) {
    const replay::TaskInfo& info = graph.info[task];
    size_t name = 0;
    if (info.kind == replay::TaskKind::kernel && info.detail < graph.kernelKeys.size())
        name = static_cast<size_t>(graph.kernelKeys[info.detail].nameId);
    if (info.kind == replay::TaskKind::host || info.kind == replay::TaskKind::blockingCall) name = info.detail;
    return name < analysis.facts.strings.size() ? analysis.facts.strings[name] : std::string();
}

std::vector<uint32_t> usualLeads(const replay::TaskGraph& graph) {
    std::vector<std::vector<double>> leads(graph.lanes.size());
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        const replay::TaskInfo& info = graph.info[task];
        if (info.kind == replay::TaskKind::host && info.lane != replay::kNoLane &&
            graph.before[task] != replay::kNoTask)
            leads[info.lane].push_back(graph.leadNs[task]);
    }
    std::vector<uint32_t> usual;
    for (std::vector<double>& lane : leads) usual.push_back(static_cast<uint32_t>(facts::median(std::move(lane))));
    return usual;
}

std::vector<bool> afterLastSubmission(const replay::TaskGraph& graph) {
    std::vector<bool> launches(graph.size());
    for (replay::TaskId task = 0; task < graph.size(); ++task)
        for (const replay::Edge& edge : graph.edgesOf(task))
            if (edge.kind == static_cast<uint32_t>(replay::WaitKind::launch)) launches[edge.from] = true;
    std::vector<bool> result(graph.size());
    std::vector<int> submitsIn(graph.lanes.size(),
                               INT32_MIN);  // by lane, going backwards: the step of the next submission
    for (replay::TaskId task = static_cast<replay::TaskId>(graph.size()); task-- > 0;) {
        const replay::TaskInfo& info = graph.info[task];
        if (info.lane == replay::kNoLane || !graph.lanes[info.lane].host) continue;
        result[task] = submitsIn[info.lane] != info.step;
        if (launches[task]) submitsIn[info.lane] = info.step;
    }
    return result;
}

int64_t scaledNs(int64_t ns, double factor) {
    return std::llround(static_cast<double>(ns) * factor);
}

bool isLongLead(const replay::TaskGraph& graph, replay::TaskId task) {
    const replay::TaskInfo& info = graph.info[task];
    return info.kind == replay::TaskKind::host && info.row == 0 && info.detail == 0 &&
           graph.durationNs[task] > UINT32_MAX;
}

void shortenLead(replay::TaskGraph& graph, replay::TaskId task, uint32_t usualNs) {
    graph.leadNs[task] = std::min(graph.leadNs[task], usualNs);
    const replay::TaskId before = graph.before[task];
    if (before != replay::kNoTask && isLongLead(graph, before)) graph.durationNs[before] = usualNs;
}

int64_t ComputeLane::find(replay::TaskId task) const {
    const auto at = std::lower_bound(kernels.begin(), kernels.end(), task);  // lane order is the order of numbers
    return at != kernels.end() && *at == task ? at - kernels.begin() : -1;
}

LaunchIndex::LaunchIndex(const replay::TaskGraph& graph)
    : m_launchOf(graph.size(), replay::kNoTask), m_launched(graph.size(), 0) {
    std::vector<int64_t> kernelNs(graph.lanes.size(), 0);
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind == replay::TaskKind::kernel)
            kernelNs[graph.info[task].lane] += graph.durationNs[task];
        if (graph.info[task].kind == replay::TaskKind::transfer && graph.before[task] != replay::kNoTask)
            m_launchOf[task] = m_launchOf[graph.before[task]];
        for (const replay::Edge& edge : graph.edgesOf(task)) {
            if (static_cast<replay::WaitKind>(edge.kind) != replay::WaitKind::launch) continue;
            m_launchOf[task] = edge.from;
            ++m_launched[edge.from];
        }
    }
    for (uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
        if (kernelNs[lane] == 0) continue;
        ComputeLane& compute = m_compute[graph.lanes[lane].rank];
        if (compute.lane == replay::kNoLane || kernelNs[lane] > kernelNs[compute.lane]) compute.lane = lane;
    }
    std::vector<ComputeLane*> byLane(graph.lanes.size(), nullptr);
    for (auto& [rank, compute] : m_compute) byLane[compute.lane] = &compute;
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != replay::TaskKind::kernel || byLane[graph.info[task].lane] == nullptr) continue;
        ComputeLane& compute = *byLane[graph.info[task].lane];
        compute.kernels.push_back(task);
        compute.doneNs.push_back((compute.doneNs.empty() ? 0 : compute.doneNs.back()) + graph.durationNs[task]);
    }
}

int64_t LaunchIndex::launchedBefore(const ComputeLane& compute, replay::TaskId call) const {
    return std::ranges::partition_point(
               compute.kernels,
               [&](replay::TaskId kernel) { return launchOf(kernel) == replay::kNoTask || launchOf(kernel) < call; }) -
           compute.kernels.begin();
}

const ComputeLane& LaunchIndex::compute(int rank) const {
    static const ComputeLane nothing;
    const auto at = m_compute.find(rank);
    return at == m_compute.end() ? nothing : at->second;
}

}  // namespace rankscope::edits
