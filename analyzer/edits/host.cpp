// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_view.h"

namespace rankscope::edits {
namespace {

bool isStepBegin(const TaskGraph& graph, TaskId task) {
    return graph.info[task].row == 0 && graph.durationNs[task] == 0;
}

/// CUDA graphs instead of launches: inside a step a launch costs the host nothing, and the host's work between two of
/// them is gone. What waits for the device or for data stays.
void recordGraphs(const std::vector<int>& wanted, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    const std::vector<int> ranks = recordedRanks(analysis, wanted);
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::host || !graph.onHost(task) ||
            !std::ranges::binary_search(ranks, graph.rankOf(task)))
            continue;
        const TaskId before = graph.before[task];
        if (before == kNoTask || graph.info[before].kind != TaskKind::host || isStepBegin(graph, before) ||
            isStepBegin(graph, task))
            continue;
        graph.leadNs[task] = 0;
        graph.durationNs[task] = 0;
    }
    effect.assume("what a step launches between two waits of the host becomes one graph; kernels stay as they are");
}

/// Communication is called as soon as the host gets there: it does not hold it back in front of the call.
void launchEarly(TaskGraph& graph, const Analysis&, EditEffect& effect) {
    const std::vector<uint32_t> usual = usualLeads(graph);
    bool found = false;
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::arrival) continue;
        for (const Edge& edge : graph.edgesOf(task, WaitKind::launch)) {
            shortenLead(graph, edge.from, usual[graph.info[edge.from].lane]);
            found = true;
        }
    }
    if (!found) throw EditError("no call of communication is recorded in this run");
    effect.assume(
        "collectives are called after the host's usual work between two calls; what their streams wait for stays");
}

/// In the named steps nothing of these ranks (a kernel, a copy, a call, the host's work in front of one) takes longer
/// than the longest of its kind in their other steps.
void steady(const std::vector<int>& steps, const std::vector<int>& wanted, TaskGraph& graph, const Analysis& analysis,
            EditEffect& effect) {
    const std::vector<int> ranks = recordedRanks(analysis, wanted);
    for (int step : steps)
        if (!std::ranges::binary_search(analysis.steps, step))
            throw EditError(fmt::format("step {} is not among the analysed ones", step),
                            analysis.steps.empty() ? "there is none"
                                                   : fmt::format("analysed steps: {} to {}", analysis.steps.front(),
                                                                 analysis.steps.back()));
    struct Longest {
        int64_t durationNs = -1;
        uint32_t leadNs = 0;
    };
    std::map<std::tuple<int, TaskKind, uint32_t>, Longest> usual;  // by rank, kind and kernel or call
    const auto keyOf = [&](TaskId task) {
        const TaskInfo& info = graph.info[task];
        return std::tuple(graph.rankOf(task), info.kind,
                          info.kind == TaskKind::copy || info.kind == TaskKind::set ? 0 : info.detail);
    };
    const auto concerns = [&](TaskId task) {
        constexpr TaskKind kKinds[] = {TaskKind::host, TaskKind::blockingCall, TaskKind::kernel, TaskKind::copy,
                                       TaskKind::set};
        return std::ranges::find(kKinds, graph.info[task].kind) != std::end(kKinds) &&
               std::ranges::binary_search(ranks, graph.rankOf(task));
    };
    for (TaskId task = 0; task < graph.size(); ++task) {
        const int step = graph.info[task].step;
        if (!concerns(task) || std::ranges::binary_search(steps, step) ||
            !std::ranges::binary_search(analysis.steps, step))
            continue;
        Longest& longest = usual[keyOf(task)];
        longest.durationNs = std::max(longest.durationNs, graph.durationNs[task]);
        longest.leadNs = std::max(longest.leadNs, graph.leadNs[task]);
    }
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (!concerns(task) || !std::ranges::binary_search(steps, graph.info[task].step)) continue;
        const auto longest = usual.find(keyOf(task));
        if (longest == usual.end()) continue;
        graph.durationNs[task] = std::min(graph.durationNs[task], longest->second.durationNs);
        graph.leadNs[task] = std::min(graph.leadNs[task], longest->second.leadNs);
    }
    effect.assume("in the named steps nothing takes longer than the longest of its kind in the others");
}

}  // namespace

std::unique_ptr<Edit> parseCudaGraphs(EditArguments& arguments) {
    return editBy(recordGraphs, arguments.ranks());
}

std::unique_ptr<Edit> parseLaunchEarly(EditArguments&) {
    return editBy(launchEarly);
}

std::unique_ptr<Edit> parseSteady(EditArguments& arguments) {
    std::vector<int> steps = arguments.ranks("steps");
    if (steps.empty()) arguments.refuse("steps is missing");
    return editBy(steady, std::move(steps), arguments.ranks());
}

}  // namespace rankscope::edits
