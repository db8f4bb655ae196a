// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/copies_aside.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {
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
