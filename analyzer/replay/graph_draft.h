// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "analyzer/replay/task_graph.h"

namespace rankscope::replay {

/// A graph being made or changed: tasks and edges in any order. Draft ids are given in order of addition and never
/// change; seal() turns them into the numbers of a TaskGraph. A structural edit starts from a graph (the ids are then
/// its tasks'), removes and adds, and seals again.
///
/// To take a task out, keep it with duration and lead 0: what waited for it then waits for what it waited for.
class GraphDraft {
  public:
    GraphDraft() = default;
    /// Begins with all of `graph`; draft id = task.
    explicit GraphDraft(const TaskGraph& graph);

    uint32_t addLane(const Lane& lane);
    /// Adds a task at the end of its lane. `leadNs` beyond 4.29 s is kept by a host task of that length in front of it.
    TaskId addTask(const TaskInfo& info, int64_t durationNs, int64_t leadNs = 0);
    /// Puts a task into its lane, right behind `before` (kNoTask: first of the lane).
    TaskId insertTask(const TaskInfo& info, TaskId before, int64_t durationNs, int64_t leadNs = 0);
    /// Takes a task out of its place in its lane and puts it behind `before` of the same lane (kNoTask: first). Its
    /// edges stay.
    void move(TaskId task, TaskId before);
    /// Delays over Edge::kLongestDelayNs are cut to it.
    void addEdge(TaskId to, TaskId from, WaitKind kind, int64_t delayNs = 0, bool afterStart = false);
    /// Takes away the edges for which `unwanted(to, edge)` is true. Linear in all edges: call it once for all of an
    /// edit.
    template <typename Function>
    void removeEdges(Function&& unwanted) {
        std::erase_if(m_edges, [&](const DraftEdge& e) { return unwanted(e.to, e.edge); });
    }
    /// Takes over all of `other`; its draft ids grow by the number that is returned. Its kernel keys and exchanges must
    /// be empty.
    TaskId append(GraphDraft&& other);

    size_t size() const { return m_durationNs.size(); }
    int64_t& durationNs(TaskId task) { return m_durationNs[task]; }
    uint32_t& leadNs(TaskId task) { return m_leadNs[task]; }
    TaskInfo& info(TaskId task) { return m_info[task]; }
    TaskId before(TaskId task) const { return m_before[task]; }
    TaskId last(uint32_t lane) const { return m_last[lane]; }  // kNoTask: empty
    uint32_t addKernelKey(const facts::KernelKey& key);
    uint32_t addExchange(const Exchange& exchange, std::span<const ExchangeMember> members);
    void addMark(const StepMark& mark) { m_marks.push_back(mark); }
    void reserve(size_t tasks, size_t edges);

    /// Numbers the tasks; nullopt when they wait for each other in a circle. `numbers`, where given, becomes the task
    /// of each draft id. Linear. Takes the draft apart.
    std::optional<TaskGraph> seal(std::vector<TaskId>* numbers = nullptr) &&;

    /// For messages between processes (collector/team/packing.h).
    template <typename Visit>
    friend void forEachField(GraphDraft& draft, const Visit& visit) {
        visit(draft.m_durationNs, draft.m_leadNs, draft.m_before, draft.m_info, draft.m_edges, draft.m_next,
              draft.m_first, draft.m_last, draft.m_lanes, draft.m_kernelKeys, draft.m_exchanges, draft.m_members,
              draft.m_marks);
    }

  private:
    struct DraftEdge {
        TaskId to = kNoTask;
        Edge edge;
    };

    void unlink(TaskId task);
    void link(TaskId task, TaskId before);

    std::vector<int64_t> m_durationNs;
    std::vector<uint32_t> m_leadNs;
    std::vector<TaskId> m_before;
    std::vector<TaskInfo> m_info;
    std::vector<DraftEdge> m_edges;
    std::vector<TaskId> m_next;   // by task: the one behind it in its lane
    std::vector<TaskId> m_first;  // by lane
    std::vector<TaskId> m_last;   // by lane
    std::vector<Lane> m_lanes;
    std::vector<facts::KernelKey> m_kernelKeys;
    std::vector<Exchange> m_exchanges;
    std::vector<ExchangeMember> m_members;
    std::vector<StepMark> m_marks;
};

}  // namespace rankscope::replay
