// SPDX-License-Identifier: Apache-2.0
// The simulator, on graphs small enough to be played by hand.
#include <gtest/gtest.h>

#include "analyzer/replay/graph_draft.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::replay {
namespace {

TaskInfo on(uint32_t lane, TaskKind kind = TaskKind::kernel) {
    TaskInfo info;
    info.lane = lane & kNoLane;
    info.kind = kind;
    return info;
}

/// A draft and what it became: tasks are asked for by their draft ids.
struct Played {
    explicit Played(GraphDraft draft) : graph(*std::move(draft).seal(&numbers)), schedule(simulate(graph)) {}
    int64_t start(TaskId task) const { return schedule.startNs[numbers[task]]; }
    int64_t end(TaskId task) const { return schedule.endNs[numbers[task]]; }
    std::vector<TaskId> numbers;
    TaskGraph graph;
    Schedule schedule;
};

TEST(ReplaySimulate, TasksOfALaneFollowEachOther) {
    GraphDraft draft;
    const uint32_t stream = draft.addLane({0, false, 1});
    const TaskId first = draft.addTask(on(stream), 100);
    const TaskId second = draft.addTask(on(stream), 50, 5);
    const Played played(std::move(draft));
    EXPECT_EQ(played.end(first), 100);
    EXPECT_EQ(played.start(second), 105);
    EXPECT_EQ(played.end(second), 155);
}

TEST(ReplaySimulate, WorkStartsALatencyAfterItsCallHasBegun) {
    GraphDraft draft;
    const uint32_t host = draft.addLane({0, true, 1});
    const uint32_t stream = draft.addLane({0, false, 1});
    const TaskId call = draft.addTask(on(host, TaskKind::host), 8, 20);
    const TaskId kernel = draft.addTask(on(stream), 100);
    draft.addEdge(kernel, call, WaitKind::launch, 6, true);
    const Played played(std::move(draft));
    EXPECT_EQ(played.start(call), 20);
    EXPECT_EQ(played.start(kernel), 26);
}

TEST(ReplaySimulate, ACollectiveBeginsWithItsLastMember) {
    GraphDraft draft;
    const uint32_t a = draft.addLane({0, false, 1}), b = draft.addLane({1, false, 2});
    draft.addTask(on(a), 100);
    const TaskId arrivalA = draft.addTask(on(a, TaskKind::arrival), 0);
    const TaskId transferA = draft.addTask(on(a, TaskKind::transfer), 30);
    draft.addTask(on(b), 170);
    const TaskId arrivalB = draft.addTask(on(b, TaskKind::arrival), 0);
    const TaskId transferB = draft.addTask(on(b, TaskKind::transfer), 25);
    const TaskId join = draft.addTask(on(kNoLane, TaskKind::join), 0);
    for (TaskId arrival : {arrivalA, arrivalB}) draft.addEdge(join, arrival, WaitKind::peer);
    for (TaskId transfer : {transferA, transferB}) draft.addEdge(transfer, join, WaitKind::peer);
    const Played played(std::move(draft));
    EXPECT_EQ(played.start(arrivalA), 100);
    EXPECT_EQ(played.start(join), 170);
    EXPECT_EQ(played.end(transferA), 200);
    EXPECT_EQ(played.end(transferB), 195);
}

TEST(ReplaySimulate, OtherDurationsNeedNoOtherGraph) {
    GraphDraft draft;
    const uint32_t stream = draft.addLane({0, false, 1});
    draft.addTask(on(stream), 100);
    draft.addTask(on(stream), 50);
    const TaskGraph graph = *std::move(draft).seal();
    std::vector<int64_t> durations = graph.durationNs;
    durations[0] = 40;
    EXPECT_EQ(simulate(graph).endNs[1], 150);
    EXPECT_EQ(simulate(graph, durations).endNs[1], 90);
}

TEST(ReplaySimulate, StepsOfTheJobRunFromItsFirstRanksStart) {
    GraphDraft draft;
    for (int rank = 0; rank < 2; ++rank) {
        const uint32_t host = draft.addLane({rank, true, rank});
        for (int step = 0; step < 2; ++step) {
            const TaskId begin = draft.addTask(on(host, TaskKind::host), 100 + 10 * rank);
            const TaskId mark = draft.addTask(on(kNoLane, TaskKind::stepMark), 0);
            draft.addEdge(mark, begin, WaitKind::mark);
            draft.addMark({rank, step, false, mark});
        }
        const TaskId end = draft.addTask(on(host, TaskKind::host), 70);
        const TaskId mark = draft.addTask(on(kNoLane, TaskKind::stepMark), 0);
        draft.addEdge(mark, end, WaitKind::mark);
        draft.addMark({rank, 1, true, mark});
    }
    const Played played(std::move(draft));
    const std::vector<StepTime> steps = stepTimes(played.graph, played.schedule);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].startNs, 100);
    EXPECT_EQ(steps[0].durNs, 100);
    EXPECT_EQ(steps[1].durNs, 290 - 200);  // rank 1 ends last
}

TEST(ReplaySimulate, TasksThatWaitForEachOtherInACircleAreRefused) {
    GraphDraft draft;
    const uint32_t a = draft.addLane({0, false, 1}), b = draft.addLane({0, false, 2});
    const TaskId first = draft.addTask(on(a), 1);
    const TaskId second = draft.addTask(on(b), 1);
    draft.addEdge(first, second, WaitKind::event);
    draft.addEdge(second, first, WaitKind::event);
    EXPECT_FALSE(std::move(draft).seal());
}

TEST(ReplaySimulate, AGraphIsChangedByADraftOfIt) {
    GraphDraft draft;
    const uint32_t stream = draft.addLane({0, false, 1}), other = draft.addLane({0, false, 2});
    draft.addTask(on(stream), 100);
    draft.addTask(on(stream), 50);
    draft.addTask(on(other), 10);
    const TaskGraph graph = *std::move(draft).seal();
    TaskId first = kNoTask, second = kNoTask, alone = kNoTask;
    for (TaskId task = 0; task < graph.size(); ++task)
        (graph.durationNs[task] == 100 ? first : graph.durationNs[task] == 50 ? second : alone) = task;

    GraphDraft changed(graph);
    const TaskId between = changed.insertTask(on(stream), first, 7);
    changed.addEdge(alone, second, WaitKind::event);
    const Played played(std::move(changed));
    EXPECT_EQ(played.start(between), 100);
    EXPECT_EQ(played.start(second), 107);
    EXPECT_EQ(played.start(alone), 157);
}

TEST(ReplaySimulate, GapsLongerThanALeadHoldsAreKept) {
    GraphDraft draft;
    const uint32_t host = draft.addLane({0, true, 1});
    const TaskId late = draft.addTask(on(host, TaskKind::host), 1, 9'000'000'000);
    const Played played(std::move(draft));
    EXPECT_EQ(played.start(late), 9'000'000'000);
}

}  // namespace
}  // namespace rankscope::replay
