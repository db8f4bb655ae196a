// SPDX-License-Identifier: Apache-2.0
// Who lost to whom, by one thread and by several.
#include "analyzer/job/delays.h"

#include <gtest/gtest.h>

#include "analyzer/job/analysis.h"

namespace rankscope::job {
namespace {

/// Of so many ranks each waits in two collectives of each of three steps, for the rank behind it and for rank 7.
RecordedJob waitingRanks(int ranks) {
    RecordedJob job;
    job.steps = {0, 1, 2};
    for (int rank = 0; rank < ranks; ++rank) {
        facts::RankSummary summary;
        summary.rank = rank;
        for (const int step : job.steps)
            for (const int last : {(rank + 1) % ranks, 7}) {
                facts::CommTask task;
                task.step = step;
                task.lastRank = last;
                task.waitNs = task.exposedWaitNs = 20'000 + 100 * rank;
                task.lateTransferNs = 30 * step;
                summary.communication.push_back(task);
            }
        job.ranks.push_back(std::move(summary));
    }
    return job;
}

TEST(Delays, AreTheSameByAnyNumberOfThreads) {
    for (const int ranks : {2, 8, 50, 97}) {
        const RecordedJob job = waitingRanks(ranks);
        const Delays one = delaysOf(job, {}, 1);
        ASSERT_EQ(one.lostBy.size(), static_cast<size_t>(ranks));
        for (const unsigned threads : {2U, 3U, 64U}) {
            const Delays several = delaysOf(job, {}, threads);
            EXPECT_EQ(several.lostBy, one.lostBy) << ranks;
            EXPECT_EQ(several.pairs, one.pairs) << ranks;
            EXPECT_EQ(several.lostNs, one.lostNs) << ranks;
            ASSERT_EQ(several.byRank.size(), one.byRank.size()) << ranks;
            for (size_t i = 0; i < one.byRank.size(); ++i) {
                EXPECT_EQ(several.byRank[i].rank, one.byRank[i].rank);
                EXPECT_EQ(several.byRank[i].waitingNs, one.byRank[i].waitingNs);
                EXPECT_EQ(several.byRank[i].victims, one.byRank[i].victims);
            }
        }
    }
}

}  // namespace
}  // namespace rankscope::job
