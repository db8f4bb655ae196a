// SPDX-License-Identifier: Apache-2.0
// Who of a team reads which rank.
#include "analyzer/job/trace_readers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "collector/store/error.h"

namespace rankscope::job {
namespace {

/// How many of so many ranks each of so many processes gets, which all see all.
std::vector<std::ptrdiff_t> dealt(size_t ranks, int processes, unsigned threads = 1) {
    std::vector<facts::RankFacts> facts(ranks);
    std::vector<const facts::RankFacts*> pointers;
    for (size_t i = 0; i < ranks; ++i) {
        facts[i].rank = static_cast<int>(i);
        pointers.push_back(&facts[i]);
    }
    TraceReaders readers;
    readers.threads = threads;
    readers.taking.resize(static_cast<size_t>(processes));
    std::iota(readers.taking.begin(), readers.taking.end(), 0);
    const std::vector<size_t> parts = dealRanks("trace.db", pointers, {}, readers);
    EXPECT_EQ(parts.size(), ranks);
    std::vector<std::ptrdiff_t> count;
    for (size_t part = 0; part < readers.taking.size(); ++part) count.push_back(std::ranges::count(parts, part));
    return count;
}

TEST(TraceReaders, TheFirstProcessGetsFewerRanksForWhatItTakesOver) {
    EXPECT_EQ(dealt(7, 1), (std::vector<std::ptrdiff_t>{7}));
    EXPECT_EQ(dealt(3, 3), (std::vector<std::ptrdiff_t>{1, 1, 1}));
    // It reads a ranks and takes over the others: a + 0.04 (1024 - a) = (1024 - a) / 3, each of the others' share.
    const std::vector<std::ptrdiff_t> four = dealt(1024, 4);
    EXPECT_NEAR(static_cast<double>(four[0]), 232, 2);
    EXPECT_LE(std::ranges::max(four) - four[1], 1);
    // Eight threads read eight ranks while one is taken over: a + 8 x 0.04 (1024 - a) = (1024 - a) / 3.
    EXPECT_NEAR(static_cast<double>(dealt(1024, 4, 8)[0]), 13, 3);
    // Of many processes it has only to receive.
    const std::vector<std::ptrdiff_t> many = dealt(1024, 40);
    EXPECT_EQ(many[0], 1);
    EXPECT_LE(std::ranges::max(many), 27);
}

TEST(TraceReaders, ARankGoesToWhoSeesItsShard) {
    std::vector<facts::RankFacts> facts(4);
    std::vector<const facts::RankFacts*> pointers;
    std::map<int32_t, std::string> shards;
    for (int rank = 0; rank < 4; ++rank) {
        facts[static_cast<size_t>(rank)].rank = rank;
        pointers.push_back(&facts[static_cast<size_t>(rank)]);
        shards[rank] = rank < 3 ? "near.db" : "far.db";
    }
    const TraceReaders readers{{0, 2}, {{"near.db", {0}}, {"far.db", {2}}}, 1};
    EXPECT_EQ(dealRanks("trace.db", pointers, shards, readers), (std::vector<size_t>{0, 0, 0, 1}));
    EXPECT_THROW(dealRanks("trace.db", pointers, shards, {{0}, {{"near.db", {0}}}, 1}), store::Error);
}

}  // namespace
}  // namespace rankscope::job
