// SPDX-License-Identifier: Apache-2.0
// What must hold of every graph, on drawn ones.
#include <gtest/gtest.h>

#include <random>

#include "analyzer/replay/critical_path.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::replay {
namespace {

/// Lanes with tasks of drawn lengths; edges from tasks that were drawn before, so there is no circle. Ends with a mark
/// behind everything.
TaskGraph drawnGraph(unsigned seed) {
    std::mt19937 draw(seed);
    const auto upTo = [&](uint32_t most) { return static_cast<uint32_t>(draw() % (most + 1)); };
    GraphDraft draft;
    const uint32_t lanes = 2 + upTo(6);
    for (uint32_t lane = 0; lane < lanes; ++lane)
        draft.addLane({static_cast<int>(lane % 3), lane % 2 == 0, static_cast<int32_t>(lane)});
    TaskInfo info;
    info.lane = kNoLane;
    info.kind = TaskKind::stepMark;
    const TaskId begin = draft.addTask(info, 0);
    draft.addMark({0, 0, false, begin});
    for (int i = 0; i < 300; ++i) {
        info.lane = upTo(lanes - 1) & kNoLane;
        info.kind = upTo(1) ? TaskKind::kernel : TaskKind::transfer;
        const TaskId task = draft.addTask(info, upTo(100), upTo(3) ? 0 : upTo(20));
        for (uint32_t e = upTo(2); e > 0; --e)
            draft.addEdge(task, upTo(task - 1), WaitKind::event, upTo(5), upTo(4) == 0);
    }
    info.lane = kNoLane;
    info.kind = TaskKind::stepMark;
    const TaskId end = draft.addTask(info, 0);
    for (uint32_t lane = 0; lane < lanes; ++lane)
        if (draft.last(lane) != kNoTask) draft.addEdge(end, draft.last(lane), WaitKind::mark);
    draft.addMark({0, 0, true, end});
    return *std::move(draft).seal();
}

class ReplayProperty : public testing::TestWithParam<unsigned> {};

TEST_P(ReplayProperty, NoTaskStartsBeforeWhatItWaitsForAndNoneLaterThanItMust) {
    const TaskGraph graph = drawnGraph(GetParam());
    const Schedule schedule = simulate(graph);
    for (TaskId task = 0; task < graph.size(); ++task) {
        int64_t bound = graph.leadNs[task] + (graph.before[task] == kNoTask ? 0 : schedule.endNs[graph.before[task]]);
        for (const Edge& edge : graph.edgesOf(task)) {
            EXPECT_LT(edge.from, task);
            bound = std::max<int64_t>(bound,
                                      (edge.afterStart ? schedule.startNs : schedule.endNs)[edge.from] + edge.delayNs);
        }
        EXPECT_EQ(schedule.startNs[task], bound);
    }
}

TEST_P(ReplayProperty, LongerTasksShortenNothing) {
    const TaskGraph graph = drawnGraph(GetParam());
    const Schedule before = simulate(graph);
    std::vector<int64_t> durations = graph.durationNs;
    std::mt19937 draw(GetParam() + 1);
    for (int64_t& ns : durations) ns += draw() % 30;
    const Schedule after = simulate(graph, durations);
    for (TaskId task = 0; task < graph.size(); ++task) EXPECT_GE(after.startNs[task], before.startNs[task]);
}

TEST_P(ReplayProperty, TheCriticalPathIsAsLongAsTheSteps) {
    const TaskGraph graph = drawnGraph(GetParam());
    const Schedule schedule = simulate(graph);
    double sum = 0;
    for (const PathShare& share : criticalPath(graph, schedule, {0})) sum += share.nsPerStep;
    EXPECT_NEAR(
        sum, static_cast<double>(schedule.endNs[graph.marks.back().task] - schedule.startNs[graph.marks.front().task]),
        1);
}

TEST_P(ReplayProperty, ADraftOfAGraphIsTheSameGraph) {
    const TaskGraph graph = drawnGraph(GetParam());
    std::vector<TaskId> numbers;
    const TaskGraph again = *GraphDraft(graph).seal(&numbers);
    const Schedule first = simulate(graph);
    const Schedule second = simulate(again);
    for (TaskId task = 0; task < graph.size(); ++task) EXPECT_EQ(first.endNs[task], second.endNs[numbers[task]]);
    EXPECT_EQ(simulate(drawnGraph(GetParam())).endNs, first.endNs);
}

INSTANTIATE_TEST_SUITE_P(Drawn, ReplayProperty, testing::Range(1u, 21u));

}  // namespace
}  // namespace rankscope::replay
