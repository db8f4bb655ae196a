// SPDX-License-Identifier: Apache-2.0
// Copies that leave the compute stream, on one rank whose steps can be played by hand.
#include "analyzer/replay/edits/copies_aside.h"

#include <gtest/gtest.h>

#include "analyzer/replay/graph_draft.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::analyzer {
namespace {

constexpr int kSteps = 6;

/// Each step computes 100 ns, copies 80 ns on the same stream, and computes 100 ns more. The host calls each 1 ns after
/// the one before.
struct CopyingRank {
    TaskGraph graph;
    std::vector<TaskId> copies;

    explicit CopyingRank(bool launchKnown = true) {
        GraphDraft draft;
        const uint32_t host = draft.addLane({0, true, 0}), stream = draft.addLane({0, false, 1});
        const uint32_t key = draft.addKernelKey({1, 1, 1});
        TaskId last = kNoTask;
        std::vector<TaskId> drafted;
        const auto mark = [&](int step, bool closes) {
            const TaskId call = draft.addTask({host & kNoLane, TaskKind::host, 0, 0, step}, 0, 1);
            const TaskId task = draft.addTask({kNoLane, TaskKind::stepMark, 0, 0, step}, 0);
            draft.addEdge(task, call, WaitKind::mark);
            if (last != kNoTask) draft.addEdge(task, last, WaitKind::mark);
            draft.addMark({0, step, closes, task});
        };
        for (int step = 0; step < kSteps; ++step) {
            mark(step, false);
            for (const TaskKind kind : {TaskKind::kernel, TaskKind::copy, TaskKind::kernel}) {
                const TaskId call = draft.addTask({host & kNoLane, TaskKind::host, 1, 0, step}, 1, 0);
                last = draft.addTask({stream & kNoLane, kind, 1, kind == TaskKind::kernel ? key : 0, step},
                                     kind == TaskKind::copy ? 80 : 100, 0);
                if (kind == TaskKind::copy) drafted.push_back(last);
                if (kind != TaskKind::copy || launchKnown) draft.addEdge(last, call, WaitKind::launch, 0, true);
            }
        }
        mark(kSteps - 1, true);
        std::vector<TaskId> numbers;
        graph = *std::move(draft).seal(&numbers);
        for (TaskId copy : drafted) copies.push_back(numbers[copy]);
    }

    /// The fourth step when every copy takes `ns` beside compute.
    int64_t stepAfter(int64_t ns) {
        CopiesAside aside;
        for (TaskId copy : copies) aside[copy] = ns;
        putAside(graph, aside);
        return stepTimes(graph, simulate(graph)).at(3).durNs;
    }
};

TEST(CopiesAside, ShortOnesHideBehindCompute) {
    EXPECT_EQ(CopyingRank().stepAfter(40), 200);
}

TEST(CopiesAside, LongOnesSetThePaceAlone) {
    EXPECT_EQ(CopyingRank().stepAfter(250), 250);
}

TEST(CopiesAside, OnesThatNoCallIsKnownOfStayWhereTheyAre) {
    EXPECT_EQ(CopyingRank(false).stepAfter(40), 240);
}

}  // namespace
}  // namespace rankscope::analyzer
