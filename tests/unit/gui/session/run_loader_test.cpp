// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

struct LoadedRun {
    std::vector<int32_t> ranks;
    std::vector<std::string> messages;
};

LoadedRun loadAll(const test::SmallRun& run, int64_t memoryBytes) {
    LoadedRun loaded;
    std::promise<void> finished;
    RunLoader loader(run.info(),
                     {[&](RankTracksPtr tracks) { loaded.ranks.push_back(tracks->rank); },
                      [&](int32_t rank, const std::string& reason, const std::string&) {
                          loaded.messages.push_back("rank " + std::to_string(rank) + ": " + reason);
                      },
                      [&](bool) { finished.set_value(); }},
                     memoryBytes);
    finished.get_future().wait();
    std::sort(loaded.ranks.begin(), loaded.ranks.end());
    return loaded;
}

TEST(RunLoader, LoadsAllRanks) {
    const test::SmallRun run;
    const LoadedRun loaded = loadAll(run, RunLoader::memoryToSpare());
    EXPECT_EQ(loaded.ranks, (std::vector<int32_t>{0, 1}));
    EXPECT_TRUE(loaded.messages.empty());
}

TEST(RunLoader, ARankForWhichThereIsNoMemoryIsSaidNotToBeShown) {
    const test::SmallRun run(
        "UPDATE extent SET last_id = first_id + 999999999 WHERE table_name = 'kernel' AND rank = 1");
    const LoadedRun loaded = loadAll(run, int64_t{1} << 30);
    EXPECT_EQ(loaded.ranks, std::vector<int32_t>{0});
    ASSERT_EQ(loaded.messages.size(), 1u);
    EXPECT_EQ(loaded.messages[0],
              "rank 1: not shown: its 1000 million events need 52.2 GiB of memory, which are not free");
}

TEST(RunLoader, WhatIsMissingOfARankIsSaid) {
    for (const auto& [damage, reason] :
         {std::pair{"DELETE FROM kernel WHERE id = (SELECT first_id + 1 FROM extent WHERE table_name = 'kernel' AND "
                    "rank = 1)",
                    "table kernel holds 2 of its 3 events"},
          std::pair{"UPDATE memcpy SET start_ns = 'soon' WHERE rank = 1",
                    "1 of the 1 events in table memcpy have a rank, time or name that cannot be"},
          std::pair{"UPDATE memcpy SET start_ns = 9000000000000000000 WHERE rank = 1",
                    "1 of the 1 events in table memcpy have a rank, time or name that cannot be"},
          std::pair{"UPDATE kernel SET dur_ns = -5 WHERE id = 4",
                    "1 of the 3 events in table kernel have a negative duration and are drawn as 0 ns"},
          std::pair{"UPDATE kernel SET start_ns = 10 WHERE id = 5",
                    "1 of the 3 events in table kernel begin before the event above them"},
          std::pair{"UPDATE kernel SET name_id = 999 WHERE rank = 1",
                    "3 of the 3 events in table kernel have a rank, time or name that cannot be"},
          std::pair{"UPDATE kernel SET rank = 0 WHERE rank = 1",
                    "3 of the 3 events in table kernel have a rank, time or name that cannot be"}}) {
        const test::SmallRun run(std::string("PRAGMA foreign_keys = OFF; ") + damage);
        const LoadedRun loaded = loadAll(run, RunLoader::memoryToSpare());
        EXPECT_EQ(loaded.ranks, (std::vector<int32_t>{0, 1}));  // what can be read is shown
        ASSERT_EQ(loaded.messages.size(), 1u) << damage;
        EXPECT_EQ(loaded.messages[0], std::string("rank 1: not all of it can be read: ") + reason);
    }
}

// Rank 0's all-reduce waits 50 us for rank 1.
TEST(RunLoader, KernelsKnowHowLongTheyWaitForOtherRanks) {
    const test::SmallRun run;
    for (const RankTracksPtr& tracks : run.tracks(*run.info()))
        for (const Lane& lane : tracks->lanes)
            for (const Lane::Part& part : lane.parts)
                for (size_t i = 0; i < part.track.size(); ++i)
                    EXPECT_EQ(part.track.waitNs(i),
                              tracks->rank == 0 && part.table == EventTable::kernel && part.track.rowId(i) == 3
                                  ? 50 * test::kUs
                                  : 0)
                        << tracks->rank << " " << lane.label << " " << i;
}

TEST(RunLoader, ARangeThatIsOpenBehindTheEndOfTheRunIsSound) {
    const test::SmallRun run("UPDATE nvtx SET start_ns = 5000000000, dur_ns = NULL WHERE rank = 1");
    EXPECT_EQ(loadAll(run, RunLoader::memoryToSpare()).messages, std::vector<std::string>{});
}

TEST(RunLoader, AMachineHasSomeMemoryToSpare) {
    EXPECT_GT(RunLoader::memoryToSpare(), int64_t{1} << 20);
}

// Lanes of one label are hidden on all ranks, and numbers of threads are others on each.
TEST(RunLoader, LanesOfThreadsAreNamedAlikeOnAllRanks) {
    const test::SmallRun run(
        "UPDATE thread SET name = 'python' WHERE rank = 0; UPDATE thread SET name = NULL WHERE rank = 1; INSERT INTO "
        "process (id, host_id, pid, attempt, end_kind) VALUES (0, 0, 100, 0, 'exit'), (1, 0, 101, 0, 'exit'); INSERT "
        "INTO thread (id, process_id, rank, tid, name) VALUES (7, 0, 0, 555, 'pt_autograd_0'), (8, 0, 0, 556, "
        "'worker'), (9, 0, 0, 557, 'worker'), (10, 0, 0, 558, NULL)");
    const auto info = run.info();
    EXPECT_EQ(info->threadLanes.at(0), "main");
    EXPECT_EQ(info->threadLanes.at(1), "main");
    EXPECT_EQ(info->threadLanes.at(7), "pt_autograd_0");
    EXPECT_EQ(info->threadLanes.at(8), "thread 556 worker") << "two have the name";
    EXPECT_EQ(info->threadLanes.at(10), "thread 558");
    EXPECT_EQ(info->threadNames.at(0), "thread 100 python") << "where there is room";
    std::vector<std::string> labels;
    const auto tracks = run.tracks(*info);
    for (const Lane& lane : tracks[1]->lanes) labels.push_back(lane.label);
    EXPECT_EQ(std::ranges::count(labels, "NVTX main"), 1);
    EXPECT_EQ(std::ranges::count(labels, "CUDA calls main"), 1);
}

}  // namespace
}  // namespace rankscope::gui
