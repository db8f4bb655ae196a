// SPDX-License-Identifier: Apache-2.0
#include "injector/hooks/communicators.h"

#include <gtest/gtest.h>

#include <memory>

using namespace rankscope::injector;

namespace {
Communicator withHandle(uint64_t handle) {
    Communicator communicator;
    communicator.handle = handle;
    return communicator;
}
}  // namespace

TEST(Communicators, GetIndicesInTheOrderTheyAreMade) {
    const auto table = std::make_unique<Communicators>();
    auto a = withHandle(0x1000);
    auto b = withHandle(0x2000);
    ASSERT_TRUE(table->add(a));
    ASSERT_TRUE(table->add(b));
    EXPECT_EQ(table->find(0x1000), 1u);
    EXPECT_EQ(table->find(0x2000), 2u);
    EXPECT_EQ(table->find(0x3000), 0u);
    EXPECT_EQ(table->find(0), 0u);
}

TEST(Communicators, AHandleUsedAgainIsANewCommunicator) {
    const auto table = std::make_unique<Communicators>();
    auto first = withHandle(0x1000);
    table->add(first);
    const uint32_t epoch = table->epoch();
    EXPECT_EQ(table->remove(0x1000), 1u);
    EXPECT_NE(table->epoch(), epoch);
    EXPECT_EQ(table->find(0x1000), 0u);
    EXPECT_EQ(table->remove(0x1000), 0u);
    auto second = withHandle(0x1000);
    table->add(second);
    EXPECT_EQ(table->find(0x1000), 2u);
}

TEST(Communicators, SplitsOfOneParentAreNumbered) {
    const auto table = std::make_unique<Communicators>();
    auto parent = withHandle(0x1000);
    table->add(parent);
    EXPECT_EQ(table->nextSplit(0x1000), 0u);
    EXPECT_EQ(table->nextSplit(0x1000), 1u);
    EXPECT_EQ(table->nextSplit(0x9999), 0u);
}

TEST(Communicators, IncompleteOnesOfAThreadAreFound) {
    const auto table = std::make_unique<Communicators>();
    auto complete = withHandle(1);
    complete.rank = complete.nRanks = complete.device = 1;
    auto open = withHandle(2);
    auto others = withHandle(3);
    others.thread = 7;
    for (auto* communicator : {&complete, &open, &others}) table->add(*communicator);
    uint32_t from = 0;
    Communicator found;
    ASSERT_TRUE(table->nextIncomplete(0, from, found));
    EXPECT_EQ(found.handle, 2u);
    EXPECT_FALSE(table->nextIncomplete(0, from, found));
}

TEST(Communicators, MoreThanFitAreRefusedAndTheOthersStay) {
    const auto table = std::make_unique<Communicators>();
    for (uint64_t handle = 1; handle <= 4096; ++handle) {
        auto communicator = withHandle(handle);
        ASSERT_TRUE(table->add(communicator));
    }
    auto tooMany = withHandle(5000);
    EXPECT_FALSE(table->add(tooMany));
    EXPECT_EQ(table->find(4096), 4096u);
}
