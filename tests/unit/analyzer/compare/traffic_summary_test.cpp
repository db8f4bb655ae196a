// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {
namespace {

constexpr int64_t kMessage = 4 << 20, kTransferNs = 40'000;  // 105 GB/s

facts::CommTask messages(int calls) {
    facts::CommTask task;
    task.op = store::Op::send;
    task.communicatorId = 1;
    task.calls = calls;
    task.bytes = calls * kMessage;
    task.startNs = 0;
    task.endNs = kTransferNs;
    task.step = 0;
    return task;
}

/// Bus bandwidth of the one kind of traffic of a rank among `members`.
double busbwOf(std::vector<facts::CommTask> tasks, int members) {
    job::Analysis analysis;
    analysis.steps = {0};
    analysis.facts.communicators[1].size = members;
    facts::RankSummary rank;
    rank.communication = std::move(tasks);
    analysis.ranks.push_back(std::move(rank));
    const std::vector<TrafficSummary> traffic = summarizeTraffic(analysis);
    EXPECT_EQ(traffic.size(), 1u);
    return traffic.at(0).busbw;
}

TEST(TrafficSummary, AMessageIsAsFastAloneAsInAGroupWithOneToAnotherNeighbour) {
    const double alone = static_cast<double>(kMessage) / kTransferNs * 1e9;
    EXPECT_NEAR(busbwOf({messages(1)}, 4), alone, 1e-3 * alone);
    // Most of a long pipeline step's messages are grouped with one the other way, most of a short one's are not: that
    // says nothing of the link.
    EXPECT_NEAR(busbwOf({messages(2), messages(2), messages(1)}, 4), alone, 1e-3 * alone);
}

TEST(TrafficSummary, MessagesWithEveryoneShareThePort) {
    const double alone = static_cast<double>(kMessage) / kTransferNs * 1e9;
    EXPECT_NEAR(busbwOf({messages(6)}, 4), 3 * alone, 1e-3 * alone) << "three to send, three to receive";
    EXPECT_NEAR(busbwOf({messages(5)}, 4), 2.5 * alone, 1e-3 * alone)
        << "one message fewer is no other kind of traffic";
    EXPECT_NEAR(busbwOf({messages(4)}, 4), 2 * alone, 1e-3 * alone);
    EXPECT_NEAR(busbwOf({messages(4)}, 0), 2 * alone, 1e-3 * alone) << "the communicator is not known";
    EXPECT_NEAR(busbwOf({messages(1)}, 0), alone, 1e-3 * alone);
}

}  // namespace
}  // namespace rankscope::compare
