// SPDX-License-Identifier: Apache-2.0
#include "gui/session/range_statistics.h"

#include <gtest/gtest.h>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::kGoOn;
using test::kUs;
using test::SmallRun;

RangeActivity activityOf(const SmallRun& file, TimeRange range) {
    const auto run = file.info();
    return rangeActivity(*run, file.tracks(*run), range, kGoOn);
}

RangeTables tablesOf(const SmallRun& file, TimeRange range) {
    auto reader = file.reader();
    return readRangeTables(reader, range);
}

TEST(RangeStatistics, ActivitiesAndIdleAddUpToTheRange) {
    const RangeActivity activity = activityOf(SmallRun(), {150 * kUs, 500 * kUs});
    ASSERT_EQ(activity.ranks.size(), 2u);
    for (const RankActivity& rank : activity.ranks) {
        int64_t sum = rank.idleNs;
        for (const int64_t ns : rank.times) sum += ns;
        EXPECT_EQ(sum, activity.range.span());
    }
    const RankActivity& first = activity.ranks[0];
    EXPECT_EQ(first.times[static_cast<size_t>(Activity::compute)], 150 * kUs);
    EXPECT_EQ(first.times[static_cast<size_t>(Activity::waiting)], 50 * kUs);  // for rank 1, which comes at 450 us
    EXPECT_EQ(first.times[static_cast<size_t>(Activity::transfer)], 50 * kUs);
    EXPECT_EQ(first.times[static_cast<size_t>(Activity::memory)], 30 * kUs);
    EXPECT_EQ(first.idleNs, 70 * kUs);
    EXPECT_EQ(activity.sum().times[static_cast<size_t>(Activity::compute)], 350 * kUs);
}

TEST(RangeStatistics, KernelsAreCutAtTheEndsAndSortedByTime) {
    const RangeActivity activity = activityOf(SmallRun(), {150 * kUs, 500 * kUs});
    ASSERT_EQ(activity.kernels.size(), 2u);
    EXPECT_EQ(activity.kernels[0].name, "ampere_sgemm_128x64_tn");
    EXPECT_EQ(activity.kernels[0].count, 4u);
    EXPECT_EQ(activity.kernels[0].totalNs, (50 + 100 + 50 + 150) * kUs);
    EXPECT_EQ(activity.kernels[0].longestNs, 150 * kUs);
    EXPECT_EQ(activity.kernels[0].longest.rank, 1);
    EXPECT_EQ(activity.kernelNs, activity.kernels[0].totalNs + activity.kernels[1].totalNs);
}

TEST(RangeStatistics, KernelsThatNoLaneHasRoomForCount) {
    // Ten kernels of rank 0 at once on one stream, of which lanes show four.
    const SmallRun file(
        "UPDATE kernel SET id = id + 100; UPDATE extent SET first_id = 104, last_id = 106 WHERE table_name = 'kernel' "
        "AND rank = 1; UPDATE extent SET first_id = 91, last_id = 103 WHERE table_name = 'kernel' AND rank = 0; WITH "
        "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) INSERT INTO kernel (id, rank, "
        "stream_id, start_ns, dur_ns, name_id, nccl) SELECT 90 + i, 0, 1, i, 1000, 5, 0 FROM n");
    const RangeActivity activity = activityOf(file, {0, 20 * kUs});
    ASSERT_EQ(activity.kernels.size(), 1u);
    EXPECT_EQ(activity.kernels[0].count, 10u);
    EXPECT_EQ(activity.kernels[0].totalNs, 10'000);
    EXPECT_TRUE(activity.kernels[0].longest.valid());
}

TEST(RangeStatistics, AnEmptyRangeIsIdle) {
    const RangeActivity activity = activityOf(SmallRun(), {700 * kUs, 900 * kUs});
    EXPECT_TRUE(activity.kernels.empty());
    EXPECT_EQ(activity.ranks[0].idleNs, 200 * kUs);
    EXPECT_TRUE(tablesOf(SmallRun(), {700 * kUs, 900 * kUs}).collectives.empty());
}

TEST(RangeStatistics, IdleByCauseIsCutAtTheEnds) {
    const SmallRun file(
        "INSERT INTO idle_gap VALUES (1, 0, 0, 0, 100000, 'late_launch'), (2, 0, 0, 200000, 10000, 'late_launch'), (3, "
        "1, 0, 600000, 400000, 'blocking_call');");
    const RangeTables tables = tablesOf(file, {50 * kUs, 700 * kUs});
    ASSERT_EQ(tables.idle.size(), 2u);
    EXPECT_EQ(causeText(tables.idle[0].cause), "the host blocks in a call");
    EXPECT_EQ(tables.idle[0].ns, 100 * kUs);
    EXPECT_EQ(tables.idle[1].gaps, 2);
    EXPECT_EQ(tables.idle[1].ns, 60 * kUs);
}

TEST(RangeStatistics, IdleOfEachRankAddsUpToItsCauses) {
    const SmallRun file(
        "INSERT INTO idle_gap VALUES (1, 0, 0, 0, 100000, 'late_launch'), (2, 0, 0, 200000, 10000, 'input'), (3, 1, 0, "
        "600000, 400000, 'input');");
    const RangeTables tables = tablesOf(file, {50 * kUs, 700 * kUs});
    ASSERT_EQ(tables.idleOfRank.size(), 2u);
    for (size_t cause = 0; cause < tables.idle.size(); ++cause)
        EXPECT_EQ(tables.idleOfRank[0].ns[cause] + tables.idleOfRank[1].ns[cause], tables.idle[cause].ns)
            << tables.idle[cause].cause;
    EXPECT_EQ(tables.idle[0].cause, "input");
    EXPECT_EQ(tables.idleOfRank[0].ns, (std::vector<int64_t>{10 * kUs, 50 * kUs}));
    EXPECT_EQ(tables.idleOfRank[1].ns, (std::vector<int64_t>{100 * kUs, 0}));
    EXPECT_NE(
        rangeText(activityOf(file, {50 * kUs, 700 * kUs}), tables).find("rank 1: the host waits for input 100 us\n"),
        std::string::npos);
}

TEST(RangeStatistics, OverlapIsTheHiddenShareOfTheCommunication) {
    RankActivity rank;
    EXPECT_FALSE(rank.overlap());
    rank.times[static_cast<size_t>(Activity::overlapped)] = 30;
    rank.times[static_cast<size_t>(Activity::waiting)] = 4;
    rank.times[static_cast<size_t>(Activity::transfer)] = 6;
    EXPECT_DOUBLE_EQ(*rank.overlap(), 0.75);
}

TEST(RangeStatistics, CollectivesNameTheirWorst) {
    const RangeTables tables = tablesOf(SmallRun(), {0, 1000 * kUs});
    ASSERT_EQ(tables.collectives.size(), 1u);
    const CollectiveTotal& total = tables.collectives[0];
    EXPECT_EQ(total.operation, "all_reduce");
    EXPECT_EQ(total.communicator, "data parallel: ranks 0-1");
    EXPECT_EQ(total.bytes, 1 << 20);
    EXPECT_EQ(total.count, 1);
    EXPECT_EQ(total.transferNs, 150 * kUs);
    EXPECT_EQ(total.waitNs, 50 * kUs);
    EXPECT_EQ(total.worstSkewNs, 50 * kUs);
    EXPECT_EQ(total.worst, (EventLink{EventTable::kernel, 6, 1}));
}

TEST(RangeStatistics, TextSaysWhatTheTablesSay) {
    const std::string text = rangeText(activityOf(SmallRun(), {0, 1000 * kUs}), tablesOf(SmallRun(), {0, 1000 * kUs}));
    for (const char* expected : {"rank 0: compute 200 us (20.0 %)", "rank 1: compute 250 us (25.0 %)",
                                 "ampere_sgemm_128x64_tn", "all_reduce 1 MiB", "data parallel"})
        EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
}

TEST(RangeStatistics, OfRanksThatArriveNobodyKnowsWhenWaitingIsToldAsALeastAndTransferAsAMost) {
    const SmallRun file("UPDATE collective_member SET wait_ns = NULL, transfer_ns = NULL WHERE rank = 0;");
    const TimeRange all{0, 1000 * kUs};
    const RangeTables tables = tablesOf(file, all);
    EXPECT_EQ(tables.ranksOfUnknownWaits, (std::set<int32_t>{0}));
    const std::string text = rangeText(activityOf(file, all), tables);
    EXPECT_NE(text.find("waiting at least 0 ns (0.0 %), transfer at most 200 us (20.0 %)"), std::string::npos) << text;
    EXPECT_NE(text.find("waiting 0 ns (0.0 %), transfer 150 us (15.0 %)"), std::string::npos) << text;
    EXPECT_TRUE(tablesOf(SmallRun(), all).ranksOfUnknownWaits.empty());
    EXPECT_TRUE(tablesOf(file, {700 * kUs, 800 * kUs}).ranksOfUnknownWaits.empty()) << "nothing communicates there";
}

TEST(RangeStatistics, CancelEndsIt) {
    const SmallRun file;
    const auto run = file.info();
    const std::atomic<bool> cancelled{true};
    EXPECT_TRUE(rangeActivity(*run, file.tracks(*run), {0, 1000 * kUs}, cancelled).cancelled);
}

TEST(RangeStatistics, HostileTablesDoNoHarm) {
    const SmallRun file(
        "INSERT INTO idle_gap VALUES (1, 0, 0, 9223372036854775807, 9223372036854775807, 'x'), (2, 0, 0, "
        "-9223372036854775807, 9223372036854775807, 'a_b');UPDATE collective SET op = 'nonsense', bytes = NULL, "
        "transfer_ns = 9223372036854775807, communicator_id = 99; UPDATE collective_member SET wait_ns = "
        "9223372036854775807, kernel_id = NULL;UPDATE kernel SET name_id = 5555555;");
    const RangeTables tables = tablesOf(file, {0, 1000 * kUs});
    ASSERT_EQ(tables.collectives.size(), 1u);
    EXPECT_FALSE(tables.collectives[0].worst);
    EXPECT_EQ(activityOf(file, {0, 1000 * kUs}).kernels.front().name, "string #5555555, which does not exist");
}

}  // namespace
}  // namespace rankscope::gui
