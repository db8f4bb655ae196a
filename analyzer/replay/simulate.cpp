// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/simulate.h"

#include <algorithm>
#include <map>

namespace rankscope::replay {

Schedule simulate(const TaskGraph& graph) {
    return simulate(graph, graph.durationNs);
}

Schedule simulate(const TaskGraph& graph, std::span<const int64_t> durationNs) {
    const size_t tasks = graph.size();
    Schedule schedule;
    schedule.startNs.resize(tasks);
    schedule.endNs.resize(tasks);
    const Edge* edge = graph.edges.data();
    for (size_t task = 0; task < tasks; ++task) {
        const TaskId before = graph.before[task];
        int64_t start = int64_t{graph.leadNs[task]} + (before == kNoTask ? 0 : schedule.endNs[before]);
        for (const Edge* end = graph.edges.data() + graph.firstEdge[task + 1]; edge != end; ++edge)
            start = std::max(
                start, (edge->afterStart ? schedule.startNs[edge->from] : schedule.endNs[edge->from]) + edge->delayNs);
        schedule.startNs[task] = start;
        schedule.endNs[task] = start + durationNs[task];
    }
    return schedule;
}

std::vector<StepTime> stepTimes(const TaskGraph& graph, const Schedule& schedule) {
    struct Extent {
        int ranks = 0;
        int64_t firstNs = INT64_MAX;
    };
    std::map<int, Extent> starts;
    int ranks = 0;
    int lastRank = -1;
    int64_t lastEndNs = 0;
    for (const StepMark& mark : graph.marks) {
        const int64_t ns = schedule.startNs[mark.task];
        if (mark.rank != lastRank) ++ranks;
        lastRank = mark.rank;
        if (mark.closes) {
            lastEndNs = std::max(lastEndNs, ns);
            continue;
        }
        Extent& extent = starts[mark.step];
        ++extent.ranks;
        extent.firstNs = std::min(extent.firstNs, ns);
    }
    std::vector<StepTime> times;
    for (const auto& [step, extent] : starts)
        if (extent.ranks == ranks) times.push_back({step, extent.firstNs, 0});
    for (size_t i = 0; i < times.size(); ++i)
        times[i].durNs =
            (i + 1 < times.size() ? times[i + 1].startNs : std::max(lastEndNs, times[i].startNs)) - times[i].startNs;
    return times;
}

}  // namespace rankscope::replay
