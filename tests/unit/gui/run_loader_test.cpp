// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

struct Loaded {
    std::vector<int32_t> ranks;
    std::vector<std::string> messages;
};

Loaded loadAll(const test::SmallRun& run, int64_t memoryBytes) {
    Loaded loaded;
    std::promise<void> finished;
    RunLoader loader(run.info(), {[&](RankTracksPtr tracks) { loaded.ranks.push_back(tracks->rank); },
                                  [&](const std::string& message) { loaded.messages.push_back(message); }, [&](bool) { finished.set_value(); }},
                     memoryBytes);
    finished.get_future().wait();
    std::sort(loaded.ranks.begin(), loaded.ranks.end());
    return loaded;
}

TEST(RunLoader, LoadsAllRanks) {
    const test::SmallRun run;
    const Loaded loaded = loadAll(run, RunLoader::memoryToSpare());
    EXPECT_EQ(loaded.ranks, (std::vector<int32_t>{0, 1}));
    EXPECT_TRUE(loaded.messages.empty());
}

TEST(RunLoader, ARankForWhichThereIsNoMemoryIsSaidNotToBeShown) {
    const test::SmallRun run("UPDATE extent SET last_id = first_id + 999999999 WHERE table_name = 'kernel' AND rank = 1");
    const Loaded loaded = loadAll(run, int64_t{1} << 30);
    EXPECT_EQ(loaded.ranks, std::vector<int32_t>{0});
    ASSERT_EQ(loaded.messages.size(), 1u);
    EXPECT_EQ(loaded.messages[0], "rank 1 is not shown: its 1000 million events need 52.2 GiB of memory, which are not free");
}

TEST(RunLoader, AMachineHasSomeMemoryToSpare) { EXPECT_GT(RunLoader::memoryToSpare(), int64_t{1} << 20); }

}  // namespace
}  // namespace rankscope::gui
