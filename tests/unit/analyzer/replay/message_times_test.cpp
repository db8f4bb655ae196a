// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/message_times.h"

#include <gtest/gtest.h>

#include "analyzer/edits/graph_changes.h"
#include "analyzer/replay/replay.h"
#include "analyzer/replay/simulate.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::replay {
namespace {

using test::kUs;

TEST(MessageTimes, AKernelWithOnePeerEndsWithItsMessage) {
    const MessageEnds early{0, 1, 0, 1, 64, 100 * kUs, 130 * kUs, 130 * kUs},
        later{2, 3, 0, 1, 64, 500 * kUs, 520 * kUs, 520 * kUs}, other{4, 5, 0, 1, 32, 0, 7 * kUs, 7 * kUs};
    EXPECT_EQ(messageTimes(std::array{early, later, other}), (std::vector<int64_t>{20 * kUs, 20 * kUs, 7 * kUs}));
}

TEST(MessageTimes, AGroupTellsItsLastMessageAlone) {
    // Kernel 1 has peers 0, which ended before it, and 2, which ended with it.
    const MessageEnds first{0, 1, 0, 1, 64, 0, 40 * kUs, 90 * kUs}, last{1, 2, 1, 2, 64, 60 * kUs, 90 * kUs, 90 * kUs};
    EXPECT_EQ(messageTimes(std::array{first, last}), (std::vector<int64_t>{40 * kUs, 30 * kUs}));
}

TEST(MessageTimes, WhatOtherMessagesHoldAtBothEndsIsUnknown) {
    // 1 - 2 may have been over long before the kernels of 0 and 3 let theirs go.
    const std::array messages{MessageEnds{0, 1, 0, 1, 64, 0, 90 * kUs, 90 * kUs},
                              MessageEnds{1, 2, 1, 2, 64, 0, 90 * kUs, 90 * kUs},
                              MessageEnds{2, 3, 2, 3, 64, 0, 90 * kUs, 90 * kUs}};
    EXPECT_EQ(messageTimes(messages)[1], kUnknownMessageNs);
    EXPECT_EQ(messageTimes(messages)[0], 90 * kUs);
}

TEST(MessageTimes, OneThatLeftBeforeItsPeerCameTellsNothing) {
    EXPECT_EQ(messageTimes(std::array{MessageEnds{0, 1, 0, 1, 64, 50 * kUs, 10 * kUs, 60 * kUs}})[0],
              kUnknownMessageNs);
}

/// Three stages that compute and then exchange: 1 with 0 over a fast link (10 us) and with 2 over a slow one (100 us),
/// in one kernel.
struct Chain {
    std::array<int64_t, 3> computeNs{300 * kUs, 0, 0};
    static constexpr int64_t kFastNs = 10 * kUs, kSlowNs = 100 * kUs;

    TaskGraph graph() const {
        const int64_t fastNs = std::max(computeNs[0], computeNs[1]) + kFastNs,
                      slowNs = std::max(computeNs[1], computeNs[2]) + kSlowNs;
        const std::array<int64_t, 3> endsNs{fastNs, std::max(fastNs, slowNs), slowNs};
        facts::TraceFacts facts;
        std::vector<RankTasks> ranks;
        for (int rank = 0; rank < 3; ++rank) {
            const auto r = static_cast<size_t>(rank);
            RankTasks tasks;
            tasks.rank = rank;
            const uint32_t lane = tasks.draft.addLane({rank, false, 0});
            TaskInfo info;
            info.lane = lane & kNoLane;
            info.kind = TaskKind::kernel;
            tasks.kernelKeys.emplace_back();
            tasks.draft.addTask(info, computeNs[r]);
            info.kind = TaskKind::arrival;
            const TaskId arrival = tasks.draft.addTask(info, 0);
            info.kind = TaskKind::transfer;
            const TaskId transfer = tasks.draft.addTask(info, 0);
            tasks.comms.push_back({1, 7, computeNs[r], endsNs[r], arrival, transfer});
            ranks.push_back(std::move(tasks));
        }
        for (int rank = 0; rank < 2; ++rank) {
            store::P2p message;
            message.id = rank + 1;
            message.communicatorId = 7;
            message.srcRank = rank;
            message.dstRank = rank + 1;
            message.bytes = 64;
            message.sendArrivalNs = computeNs[static_cast<size_t>(rank)];
            message.recvArrivalNs = computeNs[static_cast<size_t>(rank) + 1];
            facts.pointToPoint.push_back(message);
        }
        return joinRanks(std::move(ranks), facts).graph;
    }
};

/// When each rank's kernel of messages ends.
std::vector<int64_t> endsOf(const TaskGraph& graph) {
    const Schedule schedule = simulate(graph);
    std::vector<int64_t> ends(3);
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.info[task].kind == TaskKind::transfer)
            ends[static_cast<size_t>(graph.rankOf(task))] = schedule.endNs[task];
    return ends;
}

void setCompute(TaskGraph& graph, int rank, int64_t ns) {
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.info[task].kind == TaskKind::kernel && graph.rankOf(task) == rank) graph.durationNs[task] = ns;
}

TEST(GroupsOfMessages, UnchangedTheyEndAsRecorded) {
    EXPECT_EQ(endsOf(Chain().graph()), (std::vector<int64_t>{310 * kUs, 310 * kUs, 100 * kUs}));
}

TEST(GroupsOfMessages, EachMessageCountsFromItsOwnTwoArrivals) {
    TaskGraph graph = Chain().graph();
    setCompute(graph, 0, 0);  // the slow message is the last one now
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{10 * kUs, 100 * kUs, 100 * kUs}));
    setCompute(graph, 2, 50 * kUs);
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{10 * kUs, 150 * kUs, 150 * kUs}));
    setCompute(graph, 1, 60 * kUs);
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{70 * kUs, 160 * kUs, 160 * kUs}));
}

TEST(GroupsOfMessages, AMessageOfAGroupIsPricedAlone) {
    TaskGraph graph = Chain().graph();
    setCompute(graph, 0, 0);
    edits::changeTransfers(graph, [](const edits::TransferTask& part, const Exchange& exchange, int64_t ns) {
        EXPECT_EQ(part.bytesIn + part.bytesOut, 64);
        return exchange.id == 2 ? ns / 4 : ns;
    });
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{10 * kUs, 25 * kUs, 25 * kUs}));
    edits::changeTransfers(graph, [](const edits::TransferTask&, const Exchange& exchange, int64_t ns) {
        return exchange.id == 1 ? 40 * kUs : ns;
    });
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{40 * kUs, 40 * kUs, 25 * kUs}));
    edits::changeTransfers(graph, [](const edits::TransferTask&, const Exchange&, int64_t) { return 0; });
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{0, 0, 0}));
}

TEST(GroupsOfMessages, AGroupIsScaledAsAWhole) {
    TaskGraph graph = Chain().graph();
    setCompute(graph, 0, 0);
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.info[task].kind == TaskKind::transfer) edits::scaleTransfer(graph, task, 0.5);
    EXPECT_EQ(endsOf(graph), (std::vector<int64_t>{5 * kUs, 50 * kUs, 50 * kUs}));
}

}  // namespace
}  // namespace rankscope::replay
