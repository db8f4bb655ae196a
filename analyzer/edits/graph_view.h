// SPDX-License-Identifier: Apache-2.0
// What edits ask of a graph again and again.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "analyzer/job/analysis.h"
#include "analyzer/replay/graph_draft.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::edits {

using job::Analysis;
using replay::Edge;
using replay::Exchange;
using replay::ExchangeMember;
using replay::GraphDraft;
using replay::kNoLane;
using replay::kNoTask;
using replay::Lane;
using replay::Schedule;
using replay::simulate;
using replay::StepMark;
using replay::TaskGraph;
using replay::TaskId;
using replay::TaskInfo;
using replay::TaskKind;
using replay::WaitKind;

/// The part of an NCCL kernel that is no waiting, with the exchange it carries.
struct TransferTask {
    TaskId task = kNoTask;
    uint32_t exchange = 0;  // index into exchanges; of grouped messages the largest
    int64_t bytesOut = 0;   // of grouped messages, sums over them
    int64_t bytesIn = 0;
    int rank = 0;
};

/// Each transfer once, by task. Kernels that no exchange is known of are left out.
std::vector<TransferTask> transferTasks(const TaskGraph& graph);

/// Its ranks are on more than one node. Unknown hosts count as one.
bool spansNodes(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange);

/// Start-up time of an exchange: alpha of the fit of its communicator and operation, or of the configured peak;
/// negative: unknown.
double startUpNs(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange);

/// What the configured links give an exchange at best, ns; negative: unknown.
double peakNs(const TaskGraph& graph, const Analysis& analysis, const Exchange& exchange);

/// What calls that put something on a stream cost, medians.
struct LaunchCosts {
    int64_t leadNs = 0, callNs = 0;  // of the call
    int64_t gapNs = 0;               // in front of the arrival, on its stream
    int64_t launchDelayNs = 0, eventDelayNs = 0;
    bool afterStart = true;
};
/// Of calls and the arrivals that they launched.
LaunchCosts launchCosts(const TaskGraph& graph, const std::vector<TaskId>& calls, const std::vector<TaskId>& arrivals);

/// Collectives of data-parallel ranks: more of these ranks make them longer.
bool growsWithReplicas(facts::CommRole role);

/// The name of a host task's call; empty: unknown, or another kind of task.
std::string_view callName(const TaskGraph& graph, const Analysis& analysis, TaskId task);

/// Scales a duration, to the nearest ns.
template <typename Ns>
Ns scaledNs(Ns ns, double factor) {
    return static_cast<Ns>(std::llround(static_cast<double>(ns) * factor));
}

/// By lane: the usual lead of a host's calls, ns, which is the host's own work between two of them. 0 for lanes of the
/// device.
std::vector<uint32_t> usualLeads(const TaskGraph& graph);

/// By task of a host lane: nothing is put on the device behind it in its step, by its own lane. What waits for the
/// device there reads the step's results.
std::vector<bool> afterLastSubmission(const TaskGraph& graph);

/// Takes away the edges for which `unwanted(to, edge)` is true; tasks keep their numbers. Linear. Makes
/// new lists: copies of the graph may share the present ones.
template <typename Function>
void removeEdges(TaskGraph& graph, Function&& unwanted) {
    std::vector<Edge> kept;
    std::vector<uint32_t> firstEdge;
    kept.reserve(graph.edges.size());
    firstEdge.reserve(graph.firstEdge.size());
    for (size_t task = 0; task < graph.size(); ++task) {
        firstEdge.push_back(static_cast<uint32_t>(kept.size()));
        for (const Edge& edge : graph.edgesOf(static_cast<TaskId>(task)))
            if (!unwanted(static_cast<TaskId>(task), edge)) kept.push_back(edge);
    }
    if (!graph.firstEdge.empty()) firstEdge.push_back(static_cast<uint32_t>(kept.size()));
    graph.edges = std::move(kept);
    graph.firstEdge = std::move(firstEdge);
}

/// Work of the host too long for a lead: a task of its own (GraphDraft::insertTask).
bool isLongLead(const TaskGraph& graph, TaskId task);
/// The host comes to `task` after no more than `usualNs` of work of its own.
void shortenLead(TaskGraph& graph, TaskId task, uint32_t usualNs);

/// Numbers that belong to tasks, a few to some of them: one list behind the other.
class NumbersByTask {
  public:
    /// (task, number) in any order; a task's numbers stay in theirs.
    NumbersByTask(size_t tasks, const std::vector<std::pair<TaskId, uint32_t>>& numbers);

    std::span<const uint32_t> of(TaskId task) const {
        return {m_numbers.data() + m_first[task], m_numbers.data() + m_first[task + 1]};
    }

  private:
    std::vector<uint32_t> m_first;  // by task, and one more
    std::vector<uint32_t> m_numbers;
};

// Who launched what, and what each rank computes in which order: a task graph read the other way round, for edits that
// move work.

/// The stream of a rank that computes most.
struct ComputeLane {
    uint32_t lane = kNoLane;
    std::vector<TaskId> kernels;  // of all steps, in order
    std::vector<int64_t> doneNs;  // compute done when each of them ends, ns; leads are left out

    TaskId at(int64_t index) const { return kernels[static_cast<size_t>(index)]; }
    /// Compute done when the kernel at an index ends, ns; none before the first.
    int64_t doneBy(int64_t index) const { return index < 0 ? 0 : doneNs[static_cast<size_t>(index)]; }
    /// Index of the kernel in `kernels`; -1 when it is none of them.
    int64_t find(TaskId task) const;
    /// Index of the kernel or of the first behind it, of a task of the lane that may be a copy; -1 when there is none.
    int64_t findFrom(TaskId task) const;
};

/// By rank: the stream that computes most. Ranks that compute nothing have none.
std::map<int, uint32_t> computeLanes(const TaskGraph& graph);

class LaunchIndex {
  public:
    explicit LaunchIndex(const TaskGraph& graph);

    /// How many kernels of a lane are launched before `call`, in front of which the launch of each is known.
    int64_t launchedBefore(const ComputeLane& compute, TaskId call) const;
    /// The host call that put a device task on its stream; kNoTask when no call is known. A transfer has its arrival's.
    TaskId launchOf(TaskId task) const { return m_launchOf[task]; }
    /// Device tasks that a host call launched (arrival and transfer count once).
    uint32_t launched(TaskId host) const { return m_launched[host]; }
    /// Compute of a rank; empty for one that computes nothing.
    const ComputeLane& compute(int rank) const;

  private:
    std::vector<TaskId> m_launchOf;
    std::vector<uint32_t> m_launched;
    std::map<int, ComputeLane> m_compute;
};

/// What a kernel takes that does nothing: no more than the shortest of these `kernels` of a rank.
int64_t emptyKernelNs(const TaskGraph& graph, std::span<const TaskId> kernels);

}  // namespace rankscope::edits
