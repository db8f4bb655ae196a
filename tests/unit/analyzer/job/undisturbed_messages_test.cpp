// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/job/collective_speed.h"

namespace rankscope::job {
namespace {

constexpr int64_t kUs = 1'000;

/// Ranks of two nodes of two, one kernel of sends and receives each.
struct Exchange4 {
    Analysis analysis;

    explicit Exchange4(const std::array<std::pair<int64_t, int64_t>, 4>& kernels) {
        for (int rank = 0; rank < 4; ++rank) {
            facts::RankFacts facts;
            facts.rank = rank;
            facts.hostId = rank / 2;
            analysis.facts.ranks.push_back(facts);
            facts::CommTask task;
            task.op = store::Op::send;
            task.startNs = kernels[static_cast<size_t>(rank)].first;
            task.endNs = kernels[static_cast<size_t>(rank)].second;
            facts::RankSummary summary;
            summary.rank = rank;
            summary.communication.push_back(task);
            analysis.ranks.push_back(std::move(summary));
        }
    }

    facts::CommTask& kernel(int rank) { return analysis.ranks.own(static_cast<size_t>(rank)).communication.front(); }

    void message(int from, int to) {
        store::P2p row;
        row.srcRank = from;
        row.dstRank = to;
        row.bytes = 1'000'000;
        row.sendArrivalNs = kernel(from).startNs;
        row.recvArrivalNs = kernel(to).startNs;
        row.transferNs =
            std::min(kernel(from).endNs, kernel(to).endNs) - std::max(kernel(from).startNs, kernel(to).startNs);
        analysis.facts.pointToPoint.push_back(row);
        ++kernel(from).calls;
        ++kernel(to).calls;
    }

    /// "FROM-TO:us" of each.
    std::string found() const {
        std::string text;
        for (const UndisturbedMessage& m : undisturbedMessages(analysis))
            text += (text.empty() ? "" : " ") + std::to_string(m.row->srcRank) + "-" + std::to_string(m.row->dstRank) +
                    ":" + std::to_string(static_cast<int64_t>(m.ns) / kUs);
        return text;
    }
};

TEST(UndisturbedMessages, OnesThatTravelAlone) {
    Exchange4 job({{{0, 50 * kUs}, {20 * kUs, 50 * kUs}, {0, 1}, {0, 1}}});
    job.message(0, 1);
    EXPECT_EQ(job.found(), "0-1:30");
}

TEST(UndisturbedMessages, OfAGroupThoseWhoseEndIsSeen) {
    // A chain: 0-1 is over first, and 2-3 last. When 1-2 was over, no kernel tells.
    Exchange4 job({{{0, 10 * kUs}, {0, 60 * kUs}, {0, 90 * kUs}, {0, 90 * kUs}}});
    job.message(0, 1);
    job.message(1, 2);
    job.message(2, 3);
    EXPECT_EQ(job.found(), "0-1:10 1-2:60 2-3:90");  // rank 1's kernel ended with 1-2
    job.kernel(1).endNs = job.kernel(0).endNs = 60 * kUs;
    EXPECT_EQ(job.found(), "0-1:60 2-3:90");
}

TEST(UndisturbedMessages, WhatSharesTheWayOutOfItsSenderOrIntoItsReceiverIsLeftOut) {
    Exchange4 across({{{0, 90 * kUs}, {0, 40 * kUs}, {0, 90 * kUs}, {0, 60 * kUs}}});
    across.message(0, 2);
    across.message(0, 3);  // both leave rank 0's node
    across.message(0, 1);
    EXPECT_EQ(across.found(), "0-1:40");
    Exchange4 into({{{0, 40 * kUs}, {0, 90 * kUs}, {0, 90 * kUs}, {0, 90 * kUs}}});
    into.message(0, 2);
    into.message(1, 2);
    EXPECT_EQ(into.found(), "");
}

TEST(UndisturbedMessages, AGroupWithAnUnknownMessageTellsNothing) {
    Exchange4 job({{{0, 10 * kUs}, {0, 60 * kUs}, {0, 60 * kUs}, {0, 1}}});
    job.message(0, 1);
    job.message(1, 2);
    ++job.kernel(1).calls;
    EXPECT_EQ(job.found(), "");
}

}  // namespace
}  // namespace rankscope::job
