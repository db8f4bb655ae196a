// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/graph_draft.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rankscope::replay {
namespace {

/// Returns by new number what `from` has by draft id. It takes `from`, so that a draft and its graph are not both held
/// whole.
template <typename Value>
std::vector<Value> inOrder(const std::vector<TaskId>& order, std::vector<Value> from) {
    std::vector<Value> values(order.size());
    for (size_t i = 0; i < order.size(); ++i) values[i] = from[order[i]];
    return values;
}

/// Holds who waits for whom, the other way round: targets of each task's edges and the next task of its lane.
struct Successors {
    std::vector<uint32_t> first;  // by task, and one more
    std::vector<TaskId> tasks;
    std::vector<uint32_t> waitsFor;  // how many each task waits for
};

}  // namespace

GraphDraft::GraphDraft(const TaskGraph& graph)
    : m_durationNs(graph.durationNs),
      m_leadNs(graph.leadNs),
      m_before(graph.before.begin(), graph.before.end()),
      m_info(graph.info.begin(), graph.info.end()),
      m_lanes(graph.lanes),
      m_kernelKeys(graph.kernelKeys),
      m_exchanges(graph.exchanges.begin(), graph.exchanges.end()),
      m_members(graph.members.begin(), graph.members.end()),
      m_marks(graph.marks) {
    m_edges.reserve(graph.edges.size());
    m_first.assign(m_lanes.size(), kNoTask);
    m_last.assign(m_lanes.size(), kNoTask);
    m_next.assign(graph.size(), kNoTask);
    for (TaskId task = 0; task < graph.size(); ++task) {
        for (const Edge& edge : graph.edgesOf(task)) m_edges.push_back({task, edge});
        if (m_info[task].lane == kNoLane) continue;
        (m_before[task] == kNoTask ? m_first[m_info[task].lane] : m_next[m_before[task]]) = task;
        m_last[m_info[task].lane] = task;  // lane order is the order of numbers
    }
}

void GraphDraft::reserve(size_t tasks, size_t edges) {
    m_durationNs.reserve(tasks);
    m_leadNs.reserve(tasks);
    m_before.reserve(tasks);
    m_next.reserve(tasks);
    m_info.reserve(tasks);
    m_edges.reserve(edges);
}

uint32_t GraphDraft::addLane(const Lane& lane) {
    m_lanes.push_back(lane);
    m_first.push_back(kNoTask);
    m_last.push_back(kNoTask);
    return static_cast<uint32_t>(m_lanes.size() - 1);
}

TaskId GraphDraft::addTask(const TaskInfo& info, int64_t durationNs, int64_t leadNs) {
    return insertTask(info, info.lane == kNoLane ? kNoTask : m_last[info.lane], durationNs, leadNs);
}

TaskId GraphDraft::insertTask(const TaskInfo& info, TaskId before, int64_t durationNs, int64_t leadNs) {
    leadNs = std::max<int64_t>(0, leadNs);
    if (leadNs > UINT32_MAX) {
        TaskInfo work = info;
        work.kind = TaskKind::host;
        work.row = work.detail = 0;
        before = insertTask(work, before, leadNs, 0);
        leadNs = 0;
    }
    const auto task = static_cast<TaskId>(m_durationNs.size());
    m_durationNs.push_back(std::max<int64_t>(0, durationNs));
    m_leadNs.push_back(static_cast<uint32_t>(leadNs));
    m_info.push_back(info);
    m_before.push_back(kNoTask);
    m_next.push_back(kNoTask);
    if (info.lane != kNoLane) link(task, before);
    return task;
}

void GraphDraft::move(TaskId task, TaskId before) {
    if (task == before || m_before[task] == before) return;
    unlink(task);
    link(task, before);
}

void GraphDraft::unlink(TaskId task) {
    const uint32_t lane = m_info[task].lane;
    (m_before[task] == kNoTask ? m_first[lane] : m_next[m_before[task]]) = m_next[task];
    (m_next[task] == kNoTask ? m_last[lane] : m_before[m_next[task]]) = m_before[task];
}

void GraphDraft::link(TaskId task, TaskId before) {
    const uint32_t lane = m_info[task].lane;
    const TaskId behind = before == kNoTask ? m_first[lane] : m_next[before];
    m_before[task] = before;
    m_next[task] = behind;
    (before == kNoTask ? m_first[lane] : m_next[before]) = task;
    (behind == kNoTask ? m_last[lane] : m_before[behind]) = task;
}

TaskId GraphDraft::append(GraphDraft&& other) {
    const auto tasks = static_cast<TaskId>(size());
    const auto lanes = static_cast<uint32_t>(m_lanes.size());
    const auto moved = [&](TaskId task) { return task == kNoTask ? kNoTask : task + tasks; };
    const auto addAll = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    addAll(m_durationNs, other.m_durationNs);
    addAll(m_leadNs, other.m_leadNs);
    addAll(m_lanes, other.m_lanes);
    for (TaskInfo info : other.m_info) {
        if (info.lane != kNoLane) info.lane = (info.lane + lanes) & kNoLane;
        m_info.push_back(info);
    }
    for (const auto& [to, from] : {std::pair(&m_before, &other.m_before), std::pair(&m_next, &other.m_next),
                                   std::pair(&m_first, &other.m_first), std::pair(&m_last, &other.m_last)})
        for (TaskId task : *from) to->push_back(moved(task));
    for (DraftEdge edge : other.m_edges) {
        edge.to += tasks;
        edge.edge.from += tasks;
        m_edges.push_back(edge);
    }
    for (StepMark mark : other.m_marks) {
        mark.task += tasks;
        m_marks.push_back(mark);
    }
    other = GraphDraft();
    return tasks;
}

void GraphDraft::addEdge(TaskId to, TaskId from, WaitKind kind, int64_t delayNs, bool afterStart) {
    m_edges.push_back({to, Edge{from, 0, afterStart, kind}});
    m_edges.back().edge.setDelay(delayNs);
}

uint32_t GraphDraft::addKernelKey(const facts::KernelKey& key) {
    m_kernelKeys.push_back(key);
    return static_cast<uint32_t>(m_kernelKeys.size() - 1);
}

uint32_t GraphDraft::addExchange(const Exchange& exchange, std::span<const ExchangeMember> members) {
    Exchange added = exchange;
    added.firstMember = static_cast<uint32_t>(m_members.size());
    added.members = static_cast<uint32_t>(members.size()) & Exchange::kMostMembers;
    m_members.insert(m_members.end(), members.begin(), members.end());
    m_exchanges.push_back(added);
    return static_cast<uint32_t>(m_exchanges.size() - 1);
}

std::optional<TaskGraph> GraphDraft::seal(std::vector<TaskId>* numbers) && {
    const size_t tasks = m_durationNs.size();
    m_next = std::vector<TaskId>();
    Successors next;
    next.first.assign(tasks + 1, 0);
    next.waitsFor.assign(tasks, 0);
    const auto eachPair = [&](auto&& function) {
        for (const DraftEdge& e : m_edges) function(e.edge.from, e.to);
        for (TaskId task = 0; task < tasks; ++task)
            if (m_before[task] != kNoTask) function(m_before[task], task);  // last: a lane is followed first
    };
    eachPair([&](TaskId from, TaskId to) {
        ++next.first[from + 1];
        ++next.waitsFor[to];
    });
    for (size_t i = 0; i < tasks; ++i) next.first[i + 1] += next.first[i];
    next.tasks.resize(next.first[tasks]);
    {
        std::vector<uint32_t> fill(next.first.begin(), next.first.end() - 1);
        eachPair([&](TaskId from, TaskId to) { next.tasks[fill[from]++] = to; });
    }
    // Kahn's algorithm with a stack: it follows a lane as far as it can, so that what a task reads lies near.
    std::vector<TaskId> order;
    order.reserve(tasks);
    std::vector<TaskId> ready;
    for (TaskId task = static_cast<TaskId>(tasks); task-- > 0;)
        if (next.waitsFor[task] == 0) ready.push_back(task);
    while (!ready.empty()) {
        const TaskId task = ready.back();
        ready.pop_back();
        order.push_back(task);
        for (uint32_t i = next.first[task]; i < next.first[task + 1]; ++i)
            if (--next.waitsFor[next.tasks[i]] == 0) ready.push_back(next.tasks[i]);
    }
    if (order.size() != tasks) return std::nullopt;
    next = {};

    std::vector<TaskId> number(tasks);
    for (size_t i = 0; i < tasks; ++i) number[order[i]] = static_cast<TaskId>(i);
    const auto numbered = [&](TaskId task) { return task == kNoTask ? kNoTask : number[task]; };

    TaskGraph graph;
    graph.durationNs = inOrder(order, std::move(m_durationNs));
    graph.leadNs = inOrder(order, std::move(m_leadNs));
    std::vector<TaskId> before = inOrder(order, std::move(m_before));
    for (TaskId& task : before) task = numbered(task);
    graph.before = std::move(before);
    graph.info = inOrder(order, std::move(m_info));
    std::vector<uint32_t> firstEdge(tasks + 1, 0);
    for (const DraftEdge& e : m_edges) ++firstEdge[number[e.to] + 1];
    for (size_t i = 0; i < tasks; ++i) firstEdge[i + 1] += firstEdge[i];
    std::vector<Edge> edges(m_edges.size());
    {
        std::vector<uint32_t> fill(firstEdge.begin(), firstEdge.end() - 1);
        for (const DraftEdge& e : m_edges) {
            Edge& edge = edges[fill[number[e.to]]++];
            edge = e.edge;
            edge.from = number[e.edge.from];
        }
    }
    graph.firstEdge = std::move(firstEdge);
    graph.edges = std::move(edges);
    graph.lanes = std::move(m_lanes);
    graph.kernelKeys = std::move(m_kernelKeys);
    for (Exchange& exchange : m_exchanges) exchange.join = numbered(exchange.join);
    for (ExchangeMember& member : m_members) {
        member.arrival = numbered(member.arrival);
        member.transfer = numbered(member.transfer);
    }
    graph.exchanges = std::move(m_exchanges);
    graph.members = std::move(m_members);
    graph.marks = std::move(m_marks);
    for (StepMark& mark : graph.marks) mark.task = numbered(mark.task);
    std::ranges::sort(graph.marks, [](const StepMark& a, const StepMark& b) {
        return std::tuple(a.rank, a.step, a.closes) < std::tuple(b.rank, b.step, b.closes);
    });
    if (numbers != nullptr) *numbers = std::move(number);
    return graph;
}

}  // namespace rankscope::replay
