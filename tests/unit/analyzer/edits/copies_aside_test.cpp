// SPDX-License-Identifier: Apache-2.0
// Copies that leave the compute stream, on one rank whose steps can be played by hand.
#include <gtest/gtest.h>

#include "analyzer/edits/graph_changes.h"
#include "analyzer/replay/graph_draft.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::edits {
namespace {

constexpr int kSteps = 6;

/// Each step computes 100 ns, copies 80 ns on the same stream, and computes 100 ns more. The host calls each 1 ns after
/// the one before.
struct CopyingRank {
    replay::TaskGraph graph;
    std::vector<replay::TaskId> copies;

    explicit CopyingRank(bool launchKnown = true) {
        replay::GraphDraft draft;
        const uint32_t host = draft.addLane({0, true, 0}), stream = draft.addLane({0, false, 1});
        const uint32_t key = draft.addKernelKey({1, 1, 1});
        replay::TaskId last = replay::kNoTask;
        std::vector<replay::TaskId> drafted;
        const auto mark = [&](int step, bool closes) {
            const replay::TaskId call =
                draft.addTask({host & replay::kNoLane, replay::TaskKind::host, 0, 0, step}, 0, 1);
            const replay::TaskId task = draft.addTask({replay::kNoLane, replay::TaskKind::stepMark, 0, 0, step}, 0);
            draft.addEdge(task, call, replay::WaitKind::mark);
            if (last != replay::kNoTask) draft.addEdge(task, last, replay::WaitKind::mark);
            draft.addMark({0, step, closes, task});
        };
        for (int step = 0; step < kSteps; ++step) {
            mark(step, false);
            for (const replay::TaskKind kind :
                 {replay::TaskKind::kernel, replay::TaskKind::copy, replay::TaskKind::kernel}) {
                const replay::TaskId call =
                    draft.addTask({host & replay::kNoLane, replay::TaskKind::host, 1, 0, step}, 1, 0);
                last =
                    draft.addTask({stream & replay::kNoLane, kind, 1, kind == replay::TaskKind::kernel ? key : 0, step},
                                  kind == replay::TaskKind::copy ? 80 : 100, 0);
                if (kind == replay::TaskKind::copy) drafted.push_back(last);
                if (kind != replay::TaskKind::copy || launchKnown)
                    draft.addEdge(last, call, replay::WaitKind::launch, 0, true);
            }
        }
        mark(kSteps - 1, true);
        std::vector<replay::TaskId> numbers;
        graph = *std::move(draft).seal(&numbers);
        for (replay::TaskId copy : drafted) copies.push_back(numbers[copy]);
    }

    /// The fourth step when every copy takes `ns` beside compute.
    int64_t stepAfter(int64_t ns) {
        CopiesAside aside;
        for (replay::TaskId copy : copies) aside[copy] = ns;
        putAside(graph, aside);
        return replay::stepTimes(graph, replay::simulate(graph)).at(3).durNs;
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
}  // namespace rankscope::edits
